"""Talks to an OpenAI-compatible server with OpenAI's own client, and prints as JSON what it got."""

import json
import sys

import openai

base_url, token, wrong_token = sys.argv[1:]
client = openai.OpenAI(base_url=base_url, api_key=token, max_retries=0)
hello = [{"role": "user", "content": "Hello"}]
seen = {"models": [model.id for model in client.models.list()]}

reply = client.chat.completions.create(model="character:mira", messages=hello)
seen["reply"] = reply.choices[0].message.content
seen["usage"] = reply.usage.total_tokens

with client.chat.completions.with_streaming_response.create(
    model="default", messages=hello, store=True, metadata={"conversation_id": "py"}
) as response:
    seen["conversation"] = response.headers["x-parlor-conversation-id"]

chunks = list(
    client.chat.completions.create(
        model="default", messages=hello, stream=True, stream_options={"include_usage": True}
    )
)
seen["streamed"] = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
seen["stream_usage"] = chunks[-1].usage.total_tokens

image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
client.chat.completions.create(model="default", messages=[{"role": "user", "content": [image]}])

vectors = client.embeddings.create(model="connection:double/embedder", input=["a", "b"])
seen["embedding"] = vectors.data[1].embedding

try:
    openai.OpenAI(base_url=base_url, api_key=wrong_token, max_retries=0).models.list()
except openai.AuthenticationError as error:
    seen["refused"] = [error.status_code, error.code]
try:
    client.chat.completions.create(model="gpt-4o", messages=hello)
except openai.NotFoundError as error:
    seen["unknown"] = [error.code, error.param]
print(json.dumps(seen))
