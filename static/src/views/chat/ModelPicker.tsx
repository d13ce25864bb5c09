/** Selects connection and model of this chat. */
import { useEffect, useState } from "preact/hooks";
import { Sheet } from "../../components/overlays/Dialog.tsx";
import { Select } from "../../components/forms/Select.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Notice } from "../../components/Notice.tsx";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Most names listed; typing narrows them. */
const MAX_SHOWN = 100;

/** The id for the active connection. */
const EVERYWHERE = "";

/** Both choices in one place; selecting a model applies it. */
export function ModelPicker({ chat, onClose }: { chat: OpenChat; onClose: () => void }) {
  const store = useStore();
  const { connections } = store;
  const { connection_id, model } = chat.options.value;
  const [filter, setFilter] = useState("");
  const connection = connections.items.value.find((each) => each.id === connection_id) ?? connections.active.value;
  const check = connection && connections.checks.value.get(connection.id);
  useEffect(() => {
    if (connection && !check) void connections.check(connection);
  }, [connection?.id]);
  const verdict = check?.kind === "done" ? check.verdict : undefined;
  const problem = check?.kind === "failed" ? check.error.message : verdict?.error;
  const t = texts.chat.model;
  const change = (options: Parameters<OpenChat["change"]>[0]) => chat.change(options).catch((e) => store.report(e));
  const choose = (wanted: string | null) => {
    void change({ model: wanted });
    onClose();
  };
  const names = (verdict?.models ?? []).filter((name) => name.toLowerCase().includes(filter.trim().toLowerCase()));
  const own = filter.trim();
  return (
    <Sheet title={t.title} onClose={onClose}>
      <div class="model-picker">
        {!chat.isTemporary && connections.items.value.length > 1 && (
          <Select
            label={t.connection}
            value={connection_id ?? EVERYWHERE}
            options={[
              { value: EVERYWHERE, name: t.everywhere(connections.active.value?.name ?? texts.connection.none) },
              ...connections.items.value.map(({ id, name }) => ({ value: id, name })),
            ]}
            onChange={(id) => void change({ connection_id: id === EVERYWHERE ? null : id, model: null })}
          />
        )}
        <TextField label={t.filter} value={filter} onInput={setFilter} type="search" hasFocus />
        <ul class="model-list" aria-label={t.models}>
          <ModelRow name={t.standard(connection?.model ?? undefined)} isChosen={!model} onChoose={() => choose(null)} />
          {names.slice(0, MAX_SHOWN).map((name) => (
            <ModelRow
              key={name}
              name={name}
              isChosen={name === model}
              onChoose={() => choose(name)}
            />
          ))}
          {own !== "" && !names.includes(own) && (
            <ModelRow
              name={t.own(own)}
              isChosen={false}
              onChoose={() => choose(own)}
            />
          )}
        </ul>
        {names.length > MAX_SHOWN && <p class="hint">{t.more(names.length - MAX_SHOWN)}</p>}
        {check?.kind === "running" && <p class="hint" role="status">{texts.loading}</p>}
        {problem && <Notice tone="warning" title={t.noList}>{problem}</Notice>}
      </div>
    </Sheet>
  );
}

function ModelRow({ name, isChosen, onChoose }: { name: string; isChosen: boolean; onChoose: () => void }) {
  return (
    <li>
      <button type="button" class="model-row" aria-pressed={isChosen} onClick={onChoose}>{name}</button>
    </li>
  );
}
