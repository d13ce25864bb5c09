/** Access for programs that speak OpenAI's API: base URL, a token limited to that API, and settings to copy. */
import type { MintedToken } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { Button, CopyButton } from "../../components/Button.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { useAction } from "../hooks.tsx";

/** Stands in the examples until a token is created. */
const PLACEHOLDER = "TOKEN";

/** @param canMint There is a session: a token can't create another, and the list of tokens says so. */
export function ProgramAccess(
  { canMint, onMinted }: { canMint: boolean; onMinted: (minted: MintedToken) => void },
) {
  const store = useStore();
  const t = texts.privacy;
  const [token, setToken] = useState(PLACEHOLDER);
  const [chosen, setChosen] = useState("curl");
  const baseUrl = `${globalThis.location.origin}/api/v1`;
  const examples = listProgramExamples({ baseUrl, token });
  const example = examples.find(({ id }) => id === chosen)!;
  const { isBusy, failure, run } = useAction(async () => {
    const minted = await store.access.mintToken(example.name, "openai");
    setToken(minted.token);
    onMinted(minted);
  });
  return (
    <div class="privacy-part">
      <h3>{t.programs}</h3>
      <p class="muted">{t.programsText}</p>
      <h4 id="base-url-label">{t.baseUrl}</h4>
      <p class="secret">
        <code id="program-access" tabIndex={-1} aria-labelledby="base-url-label">{baseUrl}</code>
        <CopyButton text={baseUrl} />
      </p>
      <Select
        label={t.program}
        value={chosen}
        options={examples.map(({ id, name }) => ({ value: id, name }))}
        onChange={setChosen}
      />
      <div class="program-example">
        <pre tabIndex={0} role="region" aria-label={t.exampleOf(example.name)}><code>{example.text}</code></pre>
        <CopyButton text={example.text} />
      </div>
      <p class="hint">{t.programModels}</p>
      {failure !== undefined && <p class="field-error" role="alert">{failure}</p>}
      {canMint && (
        <div class="actions-row">
          <Button icon="plus" isBusy={isBusy} onClick={() => void run()}>{t.mintForProgram}</Button>
        </div>
      )}
    </div>
  );
}

/** The settings of one program that speaks OpenAI's API, ready to copy. Field names are those of the program. */
interface ProgramExample {
  id: string;
  /** The program's own name. */
  name: string;
  text: string;
}

/** @param token Stands where the token goes. */
function listProgramExamples({ baseUrl, token }: { baseUrl: string; token: string }): ProgramExample[] {
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
