/** Bearer tokens: create, last use, revoke; and settings for programs that use them. */
import type { MintedToken, Token } from "../../api/types.ts";
import { useEffect, useState } from "preact/hooks";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, CopyButton } from "../../components/Button.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatTime } from "../../texts/format.ts";
import { ConfirmDialog } from "./ConfirmDialog.tsx";
import { formatLastUsed } from "./PasskeyList.tsx";
import { CharacterPicker } from "../CharacterPicker.tsx";
import { useAction, useList } from "../hooks.tsx";
import { QrCode } from "./QrCode.tsx";
import { Select, Switch } from "../../components/forms/inputs.tsx";
import { SwitchList } from "../../components/forms/SwitchList.tsx";

type TokenAllowance = NonNullable<Token["allow"]>;

/** @param canMint True with a session. A token can't create another token. */
export function TokenList({ canMint }: { canMint: boolean }) {
  const store = useStore();
  const t = texts.privacy;
  const { items, note, refresh } = useList(() => store.access.listTokens());
  const [doomed, setDoomed] = useState<Token>();
  const [minted, setMinted] = useState<MintedToken>();
  return (
    <>
      <div class="settings-part">
        <h3 id="tokens" tabIndex={-1}>{t.tokens}</h3>
        <p class="muted">{t.tokensText}</p>
        {note}
        {items?.length === 0 && <p>{t.tokensNone}</p>}
        {items !== undefined && items.length > 0 && (
          <List label={t.tokens}>
            {items.map((item) => (
              <ListRow
                key={item.id}
                title={item.label}
                text={describe(item)}
                end={
                  <Button kind="quiet" label={t.revokeOf(item.label)} onClick={() => setDoomed(item)}>
                    {t.revoke}
                  </Button>
                }
              />
            ))}
          </List>
        )}
        {canMint ? <MintForm onMinted={setMinted} /> : <p class="hint">{t.tokensSession}</p>}
        {minted && <MintedDialog minted={minted} onClose={close} />}
        {doomed && (
          <ConfirmDialog
            title={t.revokeToken(doomed.label)}
            action={t.revoke}
            act={() => revoke(doomed)}
            onClose={() => setDoomed(undefined)}
          >
            <p>{t.revokeTokenText}</p>
          </ConfirmDialog>
        )}
      </div>
      <ProgramAccess canMint={canMint} onMinted={setMinted} />
    </>
  );

  function close(): void {
    setMinted(undefined);
    void refresh();
  }

  async function revoke({ id }: Token): Promise<void> {
    await store.access.revokeToken(id);
    store.toasts.show(t.revoked);
    await refresh();
  }
}

/** Describes a token in one line. */
function describe({ scope, allow, created_at, last_used_at }: Token): string {
  const t = texts.privacy;
  const facts = [t.tokenFacts(formatTime(created_at, new Date())), formatLastUsed(last_used_at)];
  if (scope === "openai") facts.unshift(t.scopeOpenai, ...describeAllowance(allow));
  return facts.join(" · ");
}

/** What a limited token may use beyond the default, and what it's limited to. */
function describeAllowance(allow: Token["allow"]): string[] {
  const t = texts.privacy;
  if (allow === undefined) return [];
  const { characters, connections } = allow;
  return [
    ...characters === "all" ? [] : [t.onlyCharacters(characters.length)],
    ...connections === "all" ? [] : [t.onlyConnections(connections.length)],
    ...GRANTS.filter((grant) => allow[grant]).map((grant) => t.grants[grant]),
  ];
}

/** What a limited token may use only if it's chosen. */
const GRANTS = ["notes", "persona", "write"] as const;

function MintForm({ onMinted }: { onMinted: (token: MintedToken) => void }) {
  const store = useStore();
  const t = texts.privacy;
  const [label, setLabel] = useState("");
  const [isMissing, setMissing] = useState(false);
  const draft = useFormDraft("token");
  const { isBusy, failure, run } = useAction(async () => {
    onMinted(await store.access.mintToken(label.trim()));
    draft.clear();
    setLabel("");
  });
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        setMissing(label.trim() === "");
        if (label.trim() !== "") void run();
      }}
    >
      <Drafted draft={draft}>
        <TextField
          label={t.label}
          error={isMissing ? t.labelMissing : failure}
          maxLength={100}
          value={label}
          onInput={setLabel}
        />
      </Drafted>
      <div class="actions-row">
        <Button type="submit" icon="plus" isBusy={isBusy}>{t.mint}</Button>
      </div>
    </form>
  );
}

/** Shows a new token, once. */
function MintedDialog({ minted, onClose }: { minted: MintedToken; onClose: () => void }) {
  const t = texts.privacy;
  return (
    <Dialog
      title={t.minted(minted.label)}
      onClose={onClose}
      actions={<Button kind="primary" onClick={onClose}>{t.mintedDone}</Button>}
    >
      <div class="shown-once">
        <p>{t.mintedText}</p>
        <p class="secret">
          <code aria-label={t.minted(minted.label)}>{minted.token}</code>
          <CopyButton text={minted.token} />
        </p>
        <p class="hint">{t.mintedQr}</p>
        <QrCode text={minted.token} label={t.minted(minted.label)} />
      </div>
    </Dialog>
  );
}

/** Of a new limited token. */
const DEFAULT_ALLOWANCE: TokenAllowance = {
  characters: "all",
  connections: "all",
  notes: false,
  persona: false,
  write: false,
};

/** What a new limited token may use. */
function AllowanceFields({ allow, onChange }: { allow: TokenAllowance; onChange: (allow: TokenAllowance) => void }) {
  const t = texts.privacy;
  const { characters, connections } = allow;
  return (
    <div class="form" role="group" aria-label={t.grantsTitle}>
      <p class="hint">{t.grantsText}</p>
      <Switch
        label={t.allCharacters}
        isOn={characters === "all"}
        onChange={(isOn) => onChange({ ...allow, characters: isOn ? "all" : [] })}
      />
      {characters !== "all" && (
        <CharacterPicker
          legend={t.chosenCharacters}
          ids={characters}
          onChange={(ids) => onChange({ ...allow, characters: ids })}
        />
      )}
      <Switch
        label={t.allConnections}
        isOn={connections === "all"}
        onChange={(isOn) => onChange({ ...allow, connections: isOn ? "all" : [] })}
      />
      {connections !== "all" && (
        <ConnectionChoice
          ids={connections}
          onChange={(ids) => onChange({ ...allow, connections: ids })}
        />
      )}
      {GRANTS.map((grant) => (
        <Switch
          key={grant}
          label={t.grants[grant]}
          isOn={allow[grant]}
          onChange={(isOn) => onChange({ ...allow, [grant]: isOn })}
        />
      ))}
    </div>
  );
}

function ConnectionChoice({ ids, onChange }: { ids: string[]; onChange: (ids: string[]) => void }) {
  const { connections } = useStore();
  useEffect(() => void connections.refresh(), []);
  return (
    <SwitchList
      legend={texts.privacy.chosenConnections}
      items={connections.shown.value}
      ids={ids}
      onChange={onChange}
    />
  );
}

/** Placeholder in the examples until a token is created. */
const PLACEHOLDER = "TOKEN";

/**
 * Access for programs that speak OpenAI's API: base URL, a token limited to that API, and settings to copy.
 *
 * @param canMint True with a session. A token can't create another token, as the list of tokens says.
 */
function ProgramAccess(
  { canMint, onMinted }: { canMint: boolean; onMinted: (minted: MintedToken) => void },
) {
  const store = useStore();
  const t = texts.privacy;
  const [token, setToken] = useState(PLACEHOLDER);
  const [chosen, setChosen] = useState("curl");
  const [allow, setAllow] = useState(DEFAULT_ALLOWANCE);
  const baseUrl = `${globalThis.location.origin}/api/v1`;
  const examples = listProgramExamples({ baseUrl, token });
  const example = examples.find(({ id }) => id === chosen)!;
  const { isBusy, failure, run } = useAction(async () => {
    const minted = await store.access.mintToken(example.name, "openai", allow);
    setToken(minted.token);
    onMinted(minted);
  });
  return (
    <div class="settings-part">
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
      {canMint && <AllowanceFields allow={allow} onChange={setAllow} />}
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

/** @param token Inserted into each example as the credential. */
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
