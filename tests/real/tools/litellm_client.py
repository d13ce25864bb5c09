"""Talks to an OpenAI-compatible server with LiteLLM, by both of its APIs, and prints as JSON what it got."""

import json
import sys

import litellm

base, token = sys.argv[1:]
common = {"model": "openai/default", "api_base": base, "api_key": token, "num_retries": 0}
function = {
    "name": "weather",
    "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
question = {"role": "user", "content": "Weather in Oslo?"}
seen = {}

first = litellm.responses(input=[question], tools=[{"type": "function", **function}], **common)
call = next(item for item in first.output if item.type == "function_call")
result = {"type": "function_call_output", "call_id": call.call_id, "output": "Rain"}
second = litellm.responses(input=[result], previous_response_id=first.id, **common)
texts = [part.text for item in second.output if item.type == "message" for part in item.content]
seen["responses"] = "".join(texts)
events = litellm.responses(input="Again", stream=True, **common)
seen["streamed"] = [str(getattr(event.type, "value", event.type)) for event in events][-1]

tools = [{"type": "function", "function": function}]
message = litellm.stream_chunk_builder(
    list(litellm.completion(messages=[question], tools=tools, stream=True, **common))
).choices[0].message
call = message.tool_calls[0]
messages = [question, message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "Rain"}]
chunks = list(
    litellm.completion(messages=messages, tools=tools, stream=True, stream_options={"include_usage": True}, **common)
)
seen["completion"] = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
seen["tokens"] = chunks[-1].usage.total_tokens
print(json.dumps(seen))
