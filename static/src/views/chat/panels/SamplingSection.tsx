/** Thinking and sampling parameters of a chat. */
import { useState } from "preact/hooks";
import { TextField } from "../../../components/forms/Field.tsx";
import { Select } from "../../../components/forms/inputs.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { withParam } from "../../../state/chat/reply_request.ts";
import { findReplyModel, getEffortLabel, listEfforts } from "../../../state/connections/connection_state.ts";
import {
  formatStops,
  getParameterName,
  listMoreFields,
  NUMBER_FIELDS,
  type NumberField,
  parseNumber,
  parseStops,
} from "../../../state/documents/sampling.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { getEffort, useThinking } from "../ThinkingMenu.tsx";
import type { Change } from "./OptionsPanel.tsx";

/** The model's thinking and its samplers: those of its server, and those it refused with the reason. */
export function SamplingSection({ chat, onChange }: { chat: OpenChat; onChange: Change }) {
  const { connections } = useStore();
  const options = chat.options.value;
  const connection = connections.find(options.connection_id);
  const model = findReplyModel(connection, options.model);
  const [stops, setStops] = useState(formatStops(options.params?.stop));
  const t = texts.chatOptions.options;
  const set = (name: string, value: unknown) =>
    onChange((current) => ({ params: withParam(current.params, name, value) }));

  const samplers = connection?.dialect?.samplers;
  const refused = new Map(
    (connection?.refused ?? []).filter((each) => each.model === model && each.sent_as === undefined)
      .map(({ field, reason }) => [getParameterName(field), reason]),
  );
  const problemOf = (name: string): string | undefined => {
    const reason = refused.get(name);
    if (reason !== undefined) return t.refusedField(reason);
    const isOwn = !samplers || samplers.includes(name) || name === "max_tokens" || name === "context_size";
    return isOwn ? undefined : t.notUsed(connection?.dialect?.title ?? "");
  };
  const names: Record<string, string> = t.fields;
  const input = (field: NumberField) => {
    const value = options.params?.[field.name];
    const problem = problemOf(field.name);
    // What this server doesn't have is only shown if it is set: for another model, or by an import.
    if (problem !== undefined && !refused.has(field.name) && value === undefined) return null;
    return (
      <NumberInput
        key={field.name}
        field={field}
        label={names[field.name] ?? field.name}
        hint={field.name === "context_size" ? t.contextHint : undefined}
        problem={problem}
        initial={value}
        onChange={(number) => set(field.name, number)}
      />
    );
  };
  const more = listMoreFields(samplers ?? []);
  return (
    <>
      <ThinkingField chat={chat} />
      <div class="options-grid">{NUMBER_FIELDS.map(input)}</div>
      {problemOf("stop") === undefined || options.params?.stop !== undefined
        ? (
          <TextField
            label={t.stop}
            hint={problemOf("stop") ?? t.stopHint}
            rows={2}
            value={stops}
            isMono
            isDisabled={problemOf("stop") !== undefined}
            onInput={(typed) => {
              setStops(typed);
              set("stop", parseStops(typed));
            }}
          />
        )
        : null}
      {more.length > 0 && (
        <details
          class="more-samplers"
          open={more.some(({ name }) => options.params?.[name] !== undefined)}
        >
          <summary>{t.moreSamplers}</summary>
          <div class="options-grid">{more.map(input)}</div>
        </details>
      )}
    </>
  );
}

/** Only where the model's thinking can be set. */
function ThinkingField({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const thinking = useThinking(chat);
  if (!thinking) return null;
  const t = texts.chat.effort;
  const choose = (value: string) =>
    chat.changeParam("reasoning_effort", value || undefined).catch((thrown) => store.report(thrown));
  return (
    <Select
      label={t.label}
      hint={texts.chatOptions.options.thinkingHint}
      value={getEffort(chat, thinking) ?? ""}
      options={[
        { value: "", name: t.standard },
        ...listEfforts(thinking).map((effort) => ({ value: effort, name: getEffortLabel(thinking, effort) })),
      ]}
      onChange={(value) => void choose(value)}
    />
  );
}

/** Empty for the model's default. */
function NumberInput(
  { field, label, hint, problem, initial, onChange }: {
    field: NumberField;
    label: string;
    hint: string | undefined;
    /** Why the field has no effect. */
    problem: string | undefined;
    initial: unknown;
    onChange: (value: number | undefined) => void;
  },
) {
  const [text, setText] = useState(typeof initial === "number" ? String(initial) : "");
  // A change from elsewhere: a remedy, another device, Undo.
  const [last, setLast] = useState(initial);
  const isFromElsewhere = initial !== last && parseNumber(field, text) !== initial;
  const shown = isFromElsewhere ? (typeof initial === "number" ? String(initial) : "") : text;
  const isBad = parseNumber(field, shown) === "bad";
  const t = texts.chatOptions.options;
  return (
    <TextField
      label={label}
      hint={problem ?? hint}
      inputMode="decimal"
      value={shown}
      placeholder={t.standard}
      isDisabled={problem !== undefined}
      error={isBad ? t.bad(field.min, field.max) : undefined}
      onInput={(typed) => {
        setText(typed);
        setLast(initial);
        const value = parseNumber(field, typed);
        if (value !== "bad") onChange(value);
      }}
    />
  );
}
