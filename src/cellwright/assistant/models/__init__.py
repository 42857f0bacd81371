"""Models that answer a chat, behind the protocol `Model`.

`LanguageModel` asks Anthropic, OpenAI, or a server that speaks like them; `DirectModel` is built in
and needs no key; `ScriptedModel` is for tests. Choosing one loads no library and asks no server:
libraries, key and network come with the first call.
"""
