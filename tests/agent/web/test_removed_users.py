"""A reload of the web configuration removes all users while a password waits for its check."""

from __future__ import annotations

import asyncio
from base64 import b64encode

from linkgauge.agent.web.auth import Passwords

HASH = b"$2b$04$YoR2G/GrfvsaC.NWnuBP8.SwrQOek4VArXXZpT2/zpge9z0Wv8fba"


def test_a_waiting_request_is_answered_like_a_new_one() -> None:
    async def reloaded() -> object:
        passwords = Passwords({"ann": HASH})
        header = f"Basic {b64encode(b'ann:wrong').decode()}"
        async with passwords._turn:
            waiting = asyncio.ensure_future(passwords.admit(header, "192.0.2.1"))
            await asyncio.sleep(0)
            passwords.use({})
        admission = await waiting
        passwords.close()
        return admission

    assert asyncio.run(reloaded()) == "right"
