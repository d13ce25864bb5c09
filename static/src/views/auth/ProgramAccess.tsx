/** Access for programs that speak OpenAI's API: base URL, a token limited to that API, and settings to copy. */
import type { MintedToken } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { CopyButton } from "../../components/content/CopyButton.tsx";
import { Select } from "../../components/forms/Select.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { useAction } from "../use_action.ts";
import { listProgramExamples } from "./program_examples.ts";

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
