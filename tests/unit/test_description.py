"""conversation/description: every setting of a conversation for people, and no credential."""

import msgspec
import pytest

from pursersd.conversation.description import settings_of
from pursersd.settings import resolve

JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsxIn0.eyJzdWIiOiJhIn0.c2ln"
OPAQUE = "s3cr3t-value"


def shown(**environ: str) -> dict[str, str | None]:
    found = settings_of(resolve(environ, lambda path: ""), None)
    return {setting.name: setting.value for setting in found}


@pytest.mark.parametrize(("token", "begins"), [(JWT, "k1/"), (OPAQUE, "")])
def test_a_credential_has_a_name(token: str, begins: str) -> None:
    name = shown(ONBOARD_CENTRAL_TOKEN=token)["token"]
    assert name is not None
    assert name.startswith(begins)
    assert token[:8] not in name


@pytest.mark.parametrize("variable", ["PURSERS_MODEL", "PURSERS_SKILLS", "PURSERS_BOARDS"])
@pytest.mark.parametrize("value", [JWT, "prs1.eyJiIjoiYiJ9", f"Bearer {JWT}"])
def test_one_in_a_wrong_variable_is_blanked(variable: str, value: str) -> None:
    text = msgspec.json.encode(shown(**{"ONBOARD_CENTRAL_TOKEN": OPAQUE, variable: value})).decode()
    assert "<secret>" in text
    assert "eyJ" not in text


def test_user_information_is_left_out_of_the_url() -> None:
    assert shown(ONBOARD_CENTRAL_URL="http://me:pw@h:1/mcp", ONBOARD_CENTRAL_TOKEN=OPAQUE)["url"] == "http://h:1/mcp"
