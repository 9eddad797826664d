"""Content that is inline, whatever field it came in: every provider gets it the same way."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from agentls.core.errors import ModelError
from agentls.core.messages import DocumentBlock, ImageBlock, Message, TextBlock
from agentls.core.requests import ModelRequest
from agentls.llm.provider import ProviderConfig
from agentls.llm.registry import create
from support.fake_server import FakeServer
from support.openai_rig import KEY

MODELS = {
    "anthropic": "claude-sonnet-5-5",
    "gemini": "gemini-3.8-flash",
    "openai": "gpt-4o",
    "openai-responses": "gpt-4o",
}


async def sent(provider: str, block: ImageBlock | DocumentBlock) -> Any:
    """The last message or turn of the body that a provider is sent."""
    message = Message(role="user", content=(TextBlock(text="see"), block))
    async with FakeServer() as server:
        config = ProviderConfig(base_url=server.url, api_key=SecretStr(KEY), model=MODELS[provider])
        model = await create(provider, config)
        with pytest.raises(ModelError, match="no reply"):
            async for _ in model.stream(ModelRequest(items=(message,))):
                pass
        await model.aclose()
        body = server.exchanges[0].json
    return (body.get("messages") or body.get("contents") or body["input"])[-1]


@pytest.mark.parametrize("provider", MODELS)
@pytest.mark.parametrize(
    "block",
    [
        ImageBlock(mime_type="image/png", url="data:image/png;base64,QUFB"),
        ImageBlock(mime_type="image/png", url="DATA:image/png;name=a.png;base64,QUFB"),
        ImageBlock(mime_type="image/png", url="data:image/png,AAA"),
        ImageBlock(mime_type="image/png", url="data:,%41A%41"),
        ImageBlock(mime_type="image/png", url="file:///pictures/a.png", data="QUFB"),
        ImageBlock(mime_type="image/png", data="data:image/png;base64,QUFB"),
    ],
    ids=["base64", "with a name", "bare", "escaped", "address as well", "prefix as well"],
)
async def test_an_inline_image_is_sent_inline(provider: str, block: ImageBlock) -> None:
    plain = ImageBlock(mime_type="image/png", data="QUFB")
    assert await sent(provider, block) == await sent(provider, plain)


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai-responses"])
async def test_a_document_by_its_address_stays_one(provider: str) -> None:
    url = "https://x.example/a.pdf"
    message = await sent(provider, DocumentBlock(mime_type="application/pdf", url=url))
    assert url in str(message)


async def test_the_kind_that_an_inline_address_names_counts() -> None:
    block = ImageBlock(mime_type="image/png", url="data:image/webp;base64,QUFB")
    source = (await sent("anthropic", block))["content"][1]["source"]
    assert source == {"type": "base64", "media_type": "image/webp", "data": "QUFB"}
