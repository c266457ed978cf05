"""Why each clause exists: what goes wrong in a real runtime without it."""

from __future__ import annotations

#: by clause id, one or two sentences
WHY: dict[str, str] = {
    "P1": "Where two live tensors share a byte, one node overwrites what another still has to read: the model"
    " answers with wrong numbers and nothing crashes. Releases of ggml did this when a tensor was freed in the"
    " buffer of its last reader, and when a source behind an empty slot was not counted.",
    "P2": "Kernels load whole vectors, and devices refuse or fault on addresses that are not aligned. ggml once gave"
    " back the rest of an in-place tensor unrounded, and everything placed there afterwards was misaligned.",
    "P3": "A tensor that ends beyond its chunk or buffer writes into somebody else's memory, or faults in the middle"
    " of a request. A leaf that no node read once got no memory at all.",
    "P4": "Devices have a largest single buffer (Vulkan and Metal are strict about it). A plan that ignores it loads"
    " on one card and cannot be allocated on another.",
    "P5": "The caller reads outputs when the graph is done: logits or embeddings that a later node has overwritten"
    " look like a bad model, not like a bug.",
    "P6": "Inputs are written before the graph runs. One that shares memory with anything that is computed is"
    " overwritten before it is read.",
    "P7": "A view has no memory of its own. If it is bound elsewhere, or outlives its source, it reads whatever was"
    " put there since.",
    "P8": "Working in place saves memory, but destroys the parent: done once too often, a second reader, a view or an"
    " output sees the child's values in place of the parent's.",
    "P9": "A runtime reserves first and allocates the same graph for every token. If planning drifted, the second plan"
    " might not fit what the first reserved, and addresses kept from before (captured graphs) would be wrong.",
    "P10": "A size that is taken one way and given back another leaks a little in every graph, so that plans grow and a"
    " card that held the model no longer does. ggml lost the rest of larger parents that were reused in place.",
    "P11": "The requirement decides what the device is asked for: too high wastes the memory that sharing was to save"
    " (a release once asked for a tenth more), too low writes past the end.",
    "P12": "Runtimes measure to decide how many layers fit on a card. A measure that frees or moves buffers breaks the"
    " graph that is bound right now; one that is wrong makes them choose wrongly.",
    "P13": "Sizes come from files that others wrote. One near 2^64 that wraps round becomes a small buffer with a huge"
    " tensor in it; an empty tensor or graph that aborts takes the server down.",
    "P14": "Weights and caches have memory of their own. A planner that moves them, or counts them, makes the graph"
    " compute on empty memory or doubles what it asks for.",
    "G1": "Every token reserves or allocates again. If a graph that fits replaced buffers, each token would pay an"
    " allocation, and captured graphs and bound tensors would hold addresses of freed memory.",
    "G2": "Memory runs out in normal use: another process takes it for a moment. A server must be able to answer that"
    " one request with an error and go on; ggml bound the next graph to buffers that were gone, and crashed.",
    "G3": "Schedulers list a device's type for several backends. Two plans for one type double its memory, and bytes"
    " that are reported twice make a runtime refuse what would fit.",
    "G4": "Graphs of equal size are common: the same layer with one more reader, or with a cache that has moved. An old"
    " plan used for such a graph frees what it still reads; ggml also aborted where a tensor had memory of its own before.",
    "G5": "Contexts come and go in a server. What an allocator keeps when it is freed is lost until the process ends.",
    "R1": "Who already has buffers has handed out addresses in them. Making it share from then on would leave two sets"
    " of memory, and graphs bound to the one that nobody tracks.",
    "R2": "Contexts attach by trial: where placement does not match, sharing is simply left off. A refusal that changed"
    " something would break the context that was running well before.",
    "R3": "Target and draft compute in the same memory in turns. If it were sized for the last to reserve, the other's"
    " next graph would run past its end.",
    "R4": "Near the limit of a card, old and new buffer together do not fit even where the new one alone does. Growth"
    " must also be there at once: the graph that asked for it runs next.",
    "R5": "A buffer that shrinks and grows with each change of role costs an allocation and a dropped graph every time"
    " (about 160 ms each in the seed's figures). Only an explicit request may give memory back.",
    "R6": "A shrink that looks at one role alone takes away what the other has bound: its next graph computes beyond the"
    " buffer's end. One that never comes keeps the prompt's memory for ever.",
    "R7": "The generation is the only sign by which the other role learns that its addresses are gone. A replacement"
    " that does not show in it is a use of freed memory waiting to happen.",
    "R8": "Contexts keep the reservation they made. Unless the request is visible to both, one of them never reserves"
    " again and the shrink never happens; if an old answer counted for a new request, it would come too early.",
    "R9": "After the old buffer is freed the new one may not be had. Anything but an empty entry with its requirement"
    " kept would be a buffer that is too small, or a claim to memory that is not there.",
    "R10": "A draft that asks for too much pins its target: the target's own small graph cannot run either. That is"
    " hard to see from outside, so it has to be exact when it begins and when it ends.",
    "R11": "Speculative decoding can be switched off and on. If the shared buffers died with the first to go, the"
    " other would go on in freed memory; if they never died, each round would leak.",
    "R12": "A bound graph is a list of raw addresses. Computing it after the other role has replaced the buffers reads"
    " and writes freed memory, quietly, as the memory is soon somebody else's.",
    "R13": "The breakdown tells users what to offload and fitting code what is left. Bytes counted twice make it say"
    " that a model does not fit which does.",
    "R14": "A graph larger than the scheduler was made for forces a new scheduler, and with it a new owner, under a"
    " borrower that runs. Its memory must stay until it has come over by itself.",
    "S1": "The whole point of sharing is that the peak is the larger of two needs, not their sum. A copy made by"
    " mistake costs the gigabyte that was to be saved.",
    "S2": "One context's long prompt must not pull memory from under the other. Whoever needs more leaves, and the"
    " other's bound graphs stay as valid as they were.",
    "S3": "Freed too early, the other scheduler computes in freed memory; freed too late or never, each new context"
    " leaks a compute buffer.",
    "S4": "Sharing is right only for contexts that never compute at the same time on the same device. Turned on for"
    " several sequences or cards, two of them would write into one buffer at once.",
    "S5": "Users turn sharing on to save memory. A start that fails with it and works without it would be a step back"
    " that nobody can explain.",
    "S6": "If outputs differ with sharing by as much as a bit, it has a fault: memory was reused while still needed.",
    "S7": "Near the limit is where sharing matters: it must start where two independent buffers run out of memory, or"
    " there was no use in it.",
    "C1": "Devices work behind the caller's back. Buffers that are freed while a kernel still runs are written after"
    " they are somebody else's; ggml's reserve did this before it learnt to wait.",
    "C2": "A server that cannot reserve for one request has others to serve. An abort ends them all, and computing"
    " after an unseen failure answers with garbage; ggml's scheduler once did not look whether its reserve failed.",
    "C3": "The number of nodes is guessed when a scheduler is made. A longer prompt, an adapter or more parts than"
    " were thought of must not end the process.",
    "C4": "A reset frees the caller to build another graph. A scheduler that goes on with the old one computes on"
    " tensors that do not exist any more.",
    "C5": "Contexts talk to the scheduler, not to its allocator. If the scheduler's counters lag, the check before each"
    " compute looks at the wrong number and lets stale graphs pass.",
    "M1": "With tensors spread over several cards, one of them can be full. A half-made buffer would look whole on the"
    " others, and what they gave would be lost.",
    "M2": "A tensor map says where a tensor's parts are on each device. Shared by two users, the one that clears it for"
    " its next graph leaves the other's tensors without any place.",
    "M3": "An alias points at the simple buffers of the time it was made. Used after they were replaced, it puts"
    " tensors into freed memory on every device at once.",
    "V1": "Pointers into the pool, in captured graphs too, stay valid only because the address range stays. Given back"
    " by a trim, another allocation may land there.",
    "V2": "The driver maps whole granules only, and a mapping without access set faults at the first touch. Freeing"
    " out of order would hand the same bytes out twice.",
    "V3": "A trim gives idle memory to others. Done while a kernel still uses the pool, it unmaps memory under running"
    " work, and the device faults.",
    "V4": "On several cards the user sees one backend. A trim that reaches only the first leaves the memory of the"
    " others held, and the next load fails there.",
    "V5": "Mapping fails when the card is full, between two driver calls. What was created and then forgotten is lost"
    " until the process ends, and the pool's books no longer match its memory.",
    "Q1": "A captured graph replays raw addresses without asking anyone. Once they are unmapped or another's, each"
    " replay corrupts memory at full speed.",
    "Q2": "After a trim the addresses in every captured graph are void. If one could still be launched, sooner or"
    " later somebody would.",
    "Q3": "During a capture nothing runs, work is only recorded. Memory that is unmapped or replaced meanwhile is in"
    " the recording already.",
    "W1": "Reserving for the longest prompt and the whole cache costs memory that most requests never use. Reserving"
    " for less than what comes next makes it allocate in the middle of a request.",
    "W2": "Too small is a failure, too large only waste: so growth must be immediate and shrinking slow. Without the 64"
    " calls, prompts and answers in turn would reallocate all the time.",
    "W3": "Lanes run different batches. If one lane's small batch counted as the other's, memory would be taken back"
    " from the lane that still needs it.",
    "W4": "Target and draft share memory and run asynchronously. Who does not wait overwrites the other's work; who"
    " always waits throws away the speed that the draft was for.",
    "W5": "When the other context has replaced the buffers, all that this one has bound is void. Computing first would"
    " run on freed memory.",
    "W6": "The caller decides by this number whether to go on apart, or to stop. A failure that looks like a refusal"
    " leaves a context that has no scheduler and is used all the same.",
    "W7": "Some memory kinds have no bound that a smaller reservation could rely on. Reserving less for them works"
    " until the first long sequence, then fails.",
    "W8": "The feature is off by default: whoever does not ask for it must not be able to notice it, in outputs or in"
    " memory. With it on, answers must not change.",
    "T1": "Idle pools are the memory that a server can give back between requests. Given back while a slot is busy,"
    " it is pulled from under a request that runs.",
}


def why(clause: str) -> str:
    """Why the contract has this clause (an id as in R6): what goes wrong without it. Raises KeyError."""
    return WHY[clause]
