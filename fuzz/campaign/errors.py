"""What keeps a campaign from going on."""

from __future__ import annotations


class CampaignError(Exception):
    """A campaign cannot be begun or go on. The text is one sentence for people; exit code 2."""

    exit_code = 2
