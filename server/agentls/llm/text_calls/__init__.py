"""Tools for models that call them in their text, and calls recovered from text.

How text becomes blocks: `think_tags` takes thinking off its beginning; `parser` finds what may be
a call, with `tags` (how calls are marked), `body` and `held` (text that is not decided yet),
`marked` and `forms` (what models write as a call), `belief` (whether it is one), `preview`
(arguments as they stream) and `parts` (what comes out); `reply` makes events of it. `tools` and
`recovered` are the models that do so, `prompt` is how tools are put to a model without calls of its
own.
"""
