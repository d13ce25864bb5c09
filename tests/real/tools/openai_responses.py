"""Runs a tool and a second turn with OpenAI's own client and the Responses API, and prints as JSON what it got."""

import json
import sys

import openai

base_url, token = sys.argv[1:]
client = openai.OpenAI(base_url=base_url, api_key=token, max_retries=0)
weather = {
    "type": "function",
    "name": "weather",
    "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}
settings = {"model": "default", "tools": [weather], "instructions": "Be brief"}


def run(call):
    """The result of the tool, as the next input has it."""
    city = json.loads(call.arguments)["city"]
    return {"type": "function_call_output", "call_id": call.call_id, "output": f"Rain in {city}"}


# A round of tools, which refers to the previous response.
asked = client.responses.create(input="How is the weather?", **settings)
(call,) = [item for item in asked.output if item.type == "function_call"]
answered = client.responses.create(input=[run(call)], previous_response_id=asked.id, **settings)
seen = {"call": call.name, "first": answered.output_text, "tokens": answered.usage.total_tokens}

# A second turn, streamed.
kinds = []
with client.responses.stream(input="Again", previous_response_id=answered.id, **settings) as stream:
    for event in stream:
        kinds.append(event.type)
    seen["second"] = stream.get_final_response().output_text
seen["events"] = [kinds[0], kinds[-1]]

# The same without anything stored: the client sends the whole history, with encrypted reasoning.
include = ["reasoning.encrypted_content"]
history = [{"role": "user", "content": "How is the weather?"}]
asked = client.responses.create(input=history, store=False, include=include, **settings)
history += [item.model_dump(exclude_none=True) for item in asked.output]
history += [run(item) for item in asked.output if item.type == "function_call"]
seen["unstored"] = client.responses.create(input=history, store=False, include=include, **settings).output_text

seen["read"] = client.responses.retrieve(answered.id).output_text
client.responses.delete(answered.id)
try:
    client.responses.retrieve(answered.id)
except openai.NotFoundError as error:
    seen["deleted"] = error.status_code
print(json.dumps(seen))
