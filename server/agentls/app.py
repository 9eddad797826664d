"""The composition root: settings in, a wired agent out. Only this module imports everything."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from platformdirs import user_cache_path
from pydantic import SecretStr

from agentls.agent.pipeline import FromPassages, Pipeline, ReAct, ShownPassages
from agentls.agent.session import Agent, Session
from agentls.agent.turn import Limits
from agentls.core.errors import Unauthorized
from agentls.core.ports import Buffers, Memory, Mode, Model, Passage, Tools
from agentls.core.requests import ModelInfo
from agentls.keys import SystemKeyring
from agentls.llm.provider import ProviderConfig
from agentls.llm.registry import PROVIDERS, create, one_try, pool_of
from agentls.llm.selection import Choice, choose, choose_pool
from agentls.memory.budget import TokenBudget
from agentls.memory.sliding import SlidingWindow
from agentls.permissions.approvals import SessionApprovals
from agentls.permissions.policy import RulePolicy
from agentls.permissions.rules import parse_rules
from agentls.settings import Settings
from agentls.tools.builtin import builtin
from agentls.tools.output import ToolLimits
from agentls.tools.registry import ToolRegistry
from agentls.workspace.documents import Documents
from agentls.workspace.passages import KeywordPassages
from agentls.workspace.process import Subprocesses
from agentls.workspace.ripgrep import Ripgrep
from agentls.workspace.roots import Roots

_REPLY_TOKENS = 1024
"""Room kept in a known context window for the reply."""
_PROMPT_TOKENS = 1024
"""Room kept there for the system prompt and the tools."""
_WINDOW_SHARE = 4
"""Bytes of one tool result, as a part of the tokens of the window: about a fifteenth of it."""
_PASSAGES_BYTES = 8_000
"""Passages before a question together; at most a third of a byte a token of a known window."""
_SEARCH_TIMEOUT_S = 12.0

_MODES: Mapping[Mode, str] = {
    "plan": "This is plan mode: look and propose; nothing can be changed or run.",
    "ask": "The user is asked before anything is changed or run.",
    "edit": "Make the changes that the request needs; the user may be asked about them.",
}


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where everything is kept that can be fetched or made anew."""
    base = environ.get("XDG_CACHE_HOME", "")
    return Path(base) / "agentls" if base else user_cache_path("agentls", appauthor=False)


def models_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where downloaded weights are kept."""
    return cache_folder(environ) / "models"


def learned_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where is kept what providers said of their models."""
    return cache_folder(environ) / "models.json"


class App:
    """A workspace with everything an agent needs there, shared by all of its sessions.

    `chosen` is which models were chosen and
    why, once they were: one, or the members of a pool.
    """

    def __init__(
        self, settings: Settings, *, workspace: Path, buffers: Buffers | None = None
    ) -> None:
        """Wire the parts; nothing is started or loaded until it is used."""
        self.settings = settings
        self.workspace = workspace
        self.chosen: list[tuple[Choice, Model]] = []
        self._keyring = SystemKeyring()
        self._model: Model | None = None
        self._choosing = asyncio.Lock()
        self._roots = Roots(workspace)
        self.files = Documents(self._roots, buffers)
        # Below the tools' own time limit, so that what was found until then is not lost.
        self._search = Ripgrep(self._roots, time_limit_s=_SEARCH_TIMEOUT_S)
        self.tools = self._tools_within(settings.turn.max_output_bytes)
        permissions = settings.permissions
        rules, self._rule_problems = parse_rules(
            tools=[definition.name for definition in self.tools.definitions()],
            allow=permissions.allow,
            ask=permissions.ask,
            deny=permissions.deny,
        )
        self.policy = RulePolicy(rules)
        self._passages = KeywordPassages(
            self._roots, self._search, self.files, readable=self.policy.readable
        )
        self._agent = Agent(
            model=self.model,
            tools=self._tools,
            policy=self.policy,
            memory=self._memory,
            pipeline=self._pipeline,
            system=self._system,
            limits=self._limits,
        )

    def new_session(self, *, mode: Mode | None = None, title: str = "") -> Session:
        """Start a conversation; its owner keeps it."""
        return Session(
            agent=self._agent,
            approvals=SessionApprovals(),
            mode=mode or self.settings.permissions.mode,
            title=title,
        )

    @property
    def problems(self) -> tuple[str, ...]:
        """What does not work as configured, as sentences: rules, and the keyring once asked."""
        return (*self._rule_problems, *self._keyring.problems)

    async def model(self) -> Model:
        """The model that answers, chosen on first use and kept.

        Raises:
            NoModel: nothing configured, nothing found.
            Unauthorized: the chosen provider needs a key and there is none.
            SettingsError: the chosen provider is unknown or cannot work as configured.
        """
        async with self._choosing:
            if self._model is None:
                try:
                    self._model = await self._choose()
                except Unauthorized as error:
                    provider = PROVIDERS.get(error.provider)
                    if provider is not None and provider.key_variable:
                        keep = f"`agentls key set {provider.family}`"
                        # A key may be where it could not be looked up.
                        keyring = self._keyring.problems or (f"{keep} keeps it in the keyring.",)
                        error.hint = " ".join((error.hint, *keyring))
                    raise
            return self._model

    async def _choose(self) -> Model:
        llm, configs = self.settings.llm, self.provider_configs()
        if llm.pool and llm.provider == "auto" and not llm.model:
            choices = await choose_pool(llm.pool, configs, find_key=self.find_key)
        else:
            choices = [await choose(llm.provider, configs, llm.model, find_key=self.find_key)]
        members: list[tuple[Choice, Model]] = []
        try:
            for choice in choices:
                config = choice.config if len(choices) == 1 else one_try(choice.config)
                members.append((choice, await create(choice.provider, config)))
        except BaseException as error:
            for _, model in members:  # one may have been asked something already
                await model.aclose()
            if isinstance(error, Unauthorized) and len(choices) > 1:
                variable = PROVIDERS[choice.provider].key_variable
                error.hint = f"Set {variable}, or take it out of the pool (LLM_POOL, llm.pool)."
            raise
        self.chosen = members
        return pool_of([model for _, model in members], order=llm.order, seed=llm.pool_seed)

    @property
    def reason(self) -> str:
        """Why the model was chosen, as a phrase; empty until it was."""
        if len(self.chosen) > 1:
            return "the pool of the settings"
        return self.chosen[0][0].reason if self.chosen else ""

    async def find_key(self, provider: str) -> SecretStr | None:
        """A provider's key in the system keyring, if there is one to be had."""
        return await self._keyring.find(provider)

    async def reconfigure(self, settings: Settings) -> None:
        """Choose a model anew by other settings on the next use; sessions stay as they are."""
        await self.aclose()
        self.settings = settings

    async def passages(self, question: str, *, limit: int = 5) -> Sequence[Passage]:
        """The parts of the workspace that fit a question best, found by keyword."""
        return await self._passages.find(question, limit=limit)

    async def aclose(self) -> None:
        """Release the model: connections and child processes."""
        model, self._model = self._model, None
        if model is not None:
            await model.aclose()

    def provider_configs(self) -> dict[str, ProviderConfig]:
        """The configuration of each family of providers."""
        llm = self.settings.llm
        configs = {
            provider.family: ProviderConfig(
                **getattr(llm, provider.family).model_dump(),
                read_timeout_s=llm.read_timeout_s,
                learned=learned_file(),
            )
            for provider in PROVIDERS.values()
            if provider.base_url
        }
        configs["custom"] = ProviderConfig(**llm.custom.model_dump())
        configs["local"] = ProviderConfig(**llm.local.model_dump(), models_folder=models_folder())
        script = Path(llm.script).expanduser() if llm.script else None
        configs["scripted"] = ProviderConfig(script=script)
        return configs

    def _tools(self, info: ModelInfo) -> Tools:
        """The tools, saying no more at once than a small model can take several times over."""
        window = info.capabilities.context_window
        limit = self.settings.turn.max_output_bytes
        if window is None or window // _WINDOW_SHARE >= limit:
            return self.tools
        return self._tools_within(window // _WINDOW_SHARE)

    def _tools_within(self, max_output_bytes: int) -> ToolRegistry:
        return builtin(
            self.files,
            self._search,
            Subprocesses(self._roots.folders[0]),
            ToolLimits(max_output_bytes=max_output_bytes),
            readable=lambda path: self.policy.readable(path),
        )

    def _memory(self, info: ModelInfo) -> Memory:
        memory = SlidingWindow(self.settings.memory.max_messages)
        window = info.capabilities.context_window
        if window is None:
            return memory
        overhead = (self.settings.llm.max_tokens or _REPLY_TOKENS) + _PROMPT_TOKENS
        return TokenBudget(memory, max(window - overhead, window // 4))

    def _pipeline(self, info: ModelInfo) -> Pipeline:
        match info.capabilities.tool_calling:
            case "native" | "text":
                return ReAct()
            case "constrained":
                return ReAct(self._shown_passages(info, limit=3))
            case "none":
                return FromPassages(self._shown_passages(info, limit=5))

    def _shown_passages(self, info: ModelInfo, *, limit: int) -> ShownPassages:
        window = info.capabilities.context_window
        max_bytes = _PASSAGES_BYTES if window is None else min(_PASSAGES_BYTES, window // 3)
        return ShownPassages(self._passages, limit, max_bytes)

    def _system(self, info: ModelInfo, mode: Mode) -> str:
        name = "passages.md" if info.capabilities.tool_calling == "none" else "react.md"
        text = resources.files("agentls.agent.prompts").joinpath(name).read_text("utf-8")
        return text.format(workspace=self.workspace, mode=_MODES[mode]).strip()

    def _limits(self, _info: ModelInfo) -> Limits:
        llm, turn = self.settings.llm, self.settings.turn
        return Limits(
            max_iterations=turn.max_iterations,
            max_tokens=llm.max_tokens,
            temperature=llm.temperature,
            top_p=llm.top_p,
            seed=llm.seed,
            stop=llm.stop,
            effort=llm.effort,
            tool_concurrency=turn.tool_concurrency,
        )


async def build(settings: Settings, *, workspace: Path, buffers: Buffers | None = None) -> App:
    """Wire an agent for a workspace. Never fails for lack of a model: that shows on first use."""
    return App(settings, workspace=workspace, buffers=buffers)
