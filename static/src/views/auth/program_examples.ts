/** Settings of common programs that speak OpenAI's API, ready to copy. Field names are those of the programs. */

/** The settings of one program. */
export interface ProgramExample {
  id: string;
  /** The program's own name. */
  name: string;
  text: string;
}

/** @param token Stands where the token goes. */
export function listProgramExamples({ baseUrl, token }: { baseUrl: string; token: string }): ProgramExample[] {
  return [
    {
      id: "curl",
      name: "curl",
      text: `curl ${baseUrl}/chat/completions \\
  -H "Authorization: Bearer ${token}" \\
  --json '{"model": "default", "messages": [{"role": "user", "content": "Hello"}]}'`,
    },
    {
      id: "python",
      name: "Python (openai)",
      text: `from openai import OpenAI

client = OpenAI(base_url="${baseUrl}", api_key="${token}")
reply = client.chat.completions.create(
    model="default", messages=[{"role": "user", "content": "Hello"}]
)
print(reply.choices[0].message.content)`,
    },
    {
      id: "javascript",
      name: "JavaScript (openai)",
      text: `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${baseUrl}", apiKey: "${token}" });
const reply = await client.chat.completions.create({
  model: "default",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(reply.choices[0].message.content);`,
    },
    {
      id: "continue",
      name: "Continue",
      text: `models:
  - name: Parlor
    provider: openai
    model: default
    apiBase: ${baseUrl}
    apiKey: ${token}`,
    },
    {
      id: "aider",
      name: "Aider",
      text: `export OPENAI_API_BASE=${baseUrl}
export OPENAI_API_KEY=${token}
aider --model openai/default`,
    },
    {
      id: "home-assistant",
      name: "Home Assistant (Extended OpenAI Conversation)",
      text: `Name: Parlor
API Key: ${token}
Base Url: ${baseUrl}
Chat Model: default`,
    },
    {
      id: "obsidian",
      name: "Obsidian (Copilot)",
      text: `Model Name: default
Provider: 3rd party (openai-format)
Base URL: ${baseUrl}
API Key: ${token}`,
    },
  ];
}
