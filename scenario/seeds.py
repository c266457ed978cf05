"""The seeds' figures, and the sizes that follow from them. MiB throughout, unless it says otherwise.

Stated: copied from the two documents. Card sizes are what nvidia-smi usually reports of these cards; the
documents name the cards only. Everything else here is worked out, and says how.
"""

from __future__ import annotations

RTX_4090, RTX_4070, RTX_3060 = 24564, 12282, 12288  #: as nvidia-smi usually reports them

# The first document: one RTX 4090, native MTP, buffers by reference count.
PEAK_APART, PEAK_SHARED = 22723, 21681
SAVED = PEAK_APART - PEAK_SHARED  #: 1,042: the smaller of the two contexts' buffers
PRESSURE = 1024
#: The start under pressure fails apart and works shared only if between these two much of the card is not to be had.
LEAST_LOST = RTX_4090 - (PEAK_APART + PRESSURE) + 1  #: 818
MOST_LOST = RTX_4090 - (PEAK_SHARED + PRESSURE)  #: 1,859

# The second document: RTX 4070 and RTX 3060, every buffer split over both (meta buffers), two options.
OFF, PHASE, BOTH = "options off", "phase-aware", "both options"
CARDS = ("RTX 4070", "RTX 3060")
STATED: dict[str, dict[str, tuple[int, int]]] = {
    "after load": {OFF: (11309, 11497), PHASE: (10985, 11173), BOTH: (10985, 11173)},
    "1k": {OFF: (11421, 11603), PHASE: (11321, 11503), BOTH: (11209, 11391)},
    "10k": {OFF: (11509, 11691), PHASE: (11403, 11583), BOTH: (11291, 11471)},
    "95k": {OFF: (11513, 11695), PHASE: (11407, 11589), BOTH: (11431, 11639)},
}
TOKENS = {"1k": 1000, "10k": 10_000, "95k": 95_000}
KEPT = (24, 50)  #: what the driver most likely keeps after reallocations at 95k, by the document itself
MICRO_BATCH = 256  #: -ub 256
CELLS = 131_072  #: of a slot
DRAFT = 106  #: "sharing with the draft lowers the VRAM peak by 106 MiB per GPU at every context length"

#: Of the cache's cells: 1k with both options is 112 MiB below phase-aware alone. 1,000 cells are reserved as one
#: eighth, so seven eighths of the attention part are 112 MiB, and the whole is 128. That is 4 bytes a token and cell.
ATTENTION = (STATED["1k"][PHASE][0] - STATED["1k"][BOTH][0]) * 8 // 7
ATTENTION_BYTES = ATTENTION * (1 << 20) // (MICRO_BATCH * CELLS)

#: Between a micro-batch and a generation batch: after load, phase-aware is 324 MiB below the options off; 106 of
#: them are the draft's, 218 are what a target needs less for 1 token than for 256.
LESS_TOKENS = STATED["after load"][OFF][0] - STATED["after load"][PHASE][0] - DRAFT
#: The target's buffers for 256 tokens and all cells: x - x / 256 = 218.
TARGET = LESS_TOKENS * MICRO_BATCH / (MICRO_BATCH - 1)
TOKEN_BYTES = round((TARGET - ATTENTION) * (1 << 20) / MICRO_BATCH)  #: of a token, whatever the cells
DRAFT_BYTES = (
    DRAFT * (1 << 20) - (64 << 10)
) // MICRO_BATCH  #: of a token in the draft; 64 KiB for what is no token's

# What reallocating costs, in the second document.
STATED_REALLOCATIONS, MILLISECONDS, SLOWER = 4, 160, 8  #: each about 160 ms; 8% of a 10k prompt
PROMPT_SPEED = 973  #: tokens a second, 10k prompt, both options
START_CELLS = 256  #: where the first version of the policy started
