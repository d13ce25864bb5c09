/** The rarely needed fields of a connection: server software, extra headers, extra body. */
import { useState } from "preact/hooks";
import type { Connection } from "../../api/types.ts";
import { Button, IconButton } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import { Notice } from "../../components/Notice.tsx";
import { texts } from "../../texts/texts.ts";
import {
  areHeadersLeftBehind,
  type ConnectionFields,
  type FieldProblems,
  type HeaderField,
  type ServerName,
} from "./connection_fields.ts";

/** Props of the fields. */
interface RareFieldsProps {
  fields: ConnectionFields;
  stored: Connection | undefined;
  /** Undefined until the form was checked. */
  problems: FieldProblems | undefined;
  onChange: (changes: Partial<ConnectionFields>) => void;
}

/** Collapsed, unless one of them is set or invalid. */
export function RareFields(props: RareFieldsProps) {
  const { fields, stored, problems, onChange } = props;
  const t = texts.form;
  const [isOpen, setOpen] = useState(() =>
    fields.server !== "" || fields.headers.length > 0 || fields.extraBody !== ""
  );
  const isWrong = problems !== undefined && (problems.headers.size > 0 || problems.extraBody !== undefined);
  const bodyProblem = problems?.extraBody;
  return (
    <details
      class="rare-fields"
      open={isOpen || isWrong}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>{t.more}</summary>
      {fields.kind === "openai" && (
        <Select
          id="server"
          label={t.server}
          hint={t.serverHint}
          value={fields.server}
          options={[
            { value: "", name: t.serverAuto(getDetectedTitle(stored)) },
            ...DIALECT_TITLES.map(([value, name]) => ({ value, name })),
            { value: "generic", name: texts.connections.kinds.openai },
          ]}
          onChange={(server) => onChange({ server })}
        />
      )}
      <Headers {...props} />
      <TextField
        id="extra-body"
        label={t.extraBody}
        hint={t.extraBodyHint}
        error={bodyProblem === undefined
          ? undefined
          : bodyProblem === "no_object"
          ? t.extraBodyNoObject
          : t.extraBodyBad(bodyProblem)}
        rows={4}
        isMono
        value={fields.extraBody}
        onInput={(extraBody) => onChange({ extraBody })}
      />
    </details>
  );
}

/** The detected server, if known. */
function getDetectedTitle(stored: Connection | undefined): string | undefined {
  const detected = stored?.server?.detected;
  if (detected !== undefined) {
    return detected === "generic" ? texts.connections.kinds.openai : getDialectTitle(detected);
  }
  return stored?.server?.override === undefined ? stored?.dialect?.title : undefined;
}

/** Names are shown; values are write-only. */
function Headers({ fields, stored, problems, onChange }: RareFieldsProps) {
  const t = texts.form;
  const { headers } = fields;
  const change = (index: number, changes: Partial<HeaderField>) =>
    onChange({ headers: headers.map((header, at) => at === index ? { ...header, ...changes } : header) });
  const hasMoved = areHeadersLeftBehind(fields, stored);
  return (
    <fieldset class="header-fields">
      <legend>{t.headers}</legend>
      <p class="hint">{t.headersHint}</p>
      {hasMoved && <Notice tone="warning">{t.headersMoved}</Notice>}
      {headers.map((header, index) => (
        <div key={index} class={header.isStored ? "header-row is-stored" : "header-row"}>
          {!header.isStored && (
            <TextField
              label={t.headerName}
              isMono
              isSecret
              value={header.name}
              error={problems?.headers.get(index) === "name" ? t.headerNameBad : undefined}
              onInput={(name) => change(index, { name })}
            />
          )}
          <TextField
            label={header.isStored ? header.name : t.headerValue}
            type="password"
            autocomplete="new-password"
            isMono
            placeholder={header.isStored && !hasMoved ? t.headerSaved : undefined}
            value={header.value}
            error={problems?.headers.get(index) === "value" ? t.headerValueBad : undefined}
            onInput={(value) => change(index, { value })}
          />
          <IconButton
            icon="trash"
            label={t.removeHeader(header.name)}
            onClick={() => onChange({ headers: headers.filter((_, at) => at !== index) })}
          />
        </div>
      ))}
      <div>
        <Button
          icon="plus"
          onClick={() => onChange({ headers: [...headers, { name: "", value: "", isStored: false }] })}
        >
          {t.addHeader}
        </Button>
      </div>
    </fieldset>
  );
}

/**
 * The kinds of model servers that speak OpenAI's protocol, in the order of the list, by product names, which are the
 * same in every language. `generic` has a text.
 */
const DIALECT_TITLES: readonly [name: ServerName, title: string][] = [
  ["llama.cpp", "llama.cpp"],
  ["koboldcpp", "KoboldCpp"],
  ["lmstudio", "LM Studio"],
  ["mlx", "mlx_lm"],
  ["ollama", "Ollama"],
  ["tabbyapi", "TabbyAPI"],
  ["vllm", "vLLM"],
  ["azure", "Azure OpenAI"],
  ["deepseek", "DeepSeek"],
  ["gemini", "Gemini"],
  ["groq", "Groq"],
  ["mistral", "Mistral"],
  ["openai", "OpenAI"],
  ["openrouter", "OpenRouter"],
];

/** Returns the product name; the name itself for one that this page doesn't know. */
function getDialectTitle(name: string): string {
  return DIALECT_TITLES.find(([known]) => known === name)?.[1] ?? name;
}
