/** Settings, Regex scripts: the owner's scripts in the order in which they run. */
import { useMemo, useRef, useState } from "preact/hooks";
import { asApiError } from "../../api/client.ts";
import { regexScriptApi } from "../../api/regex_scripts.ts";
import type { RegexScript } from "../../api/types.ts";
import { downloadFile } from "../../components/ApiFile.tsx";
import { Button } from "../../components/Button.tsx";
import { VisibleText } from "../../components/content/VisibleText.tsx";
import { SortableList } from "../../components/lists/SortableList.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { Menu } from "../../components/overlays/Menu.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { toVisibleText } from "../../texts/visible_text.ts";
import { useResource } from "../hooks.tsx";
import { RegexScriptDialog } from "./RegexScriptDialog.tsx";

/** The page. */
export function RegexScriptsPage() {
  const store = useStore();
  const t = texts.regexScripts;
  const api = useMemo(() => regexScriptApi(store.api.client), []);
  const scripts = useResource(() => api.list(), "regex_script");
  /** The one that is edited; `null` for a new one. */
  const [open, setOpen] = useState<RegexScript | null>();
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const file = useRef<HTMLInputElement>(null);
  const shown = scripts.value?.filter(({ id }) => !hidden.has(id));
  const save = (id: string, changes: Parameters<typeof api.save>[1]) =>
    api.save(id, changes).catch((thrown) => store.report(thrown)).finally(scripts.again);
  const hide = (id: string, isHidden: boolean) =>
    setHidden((before) => new Set([...before].filter((one) => one !== id).concat(isHidden ? [id] : [])));
  const remove = ({ id, name }: RegexScript) => {
    hide(id, true);
    store.toasts.offerUndo(t.removed(nameOf(name)), texts.undo, () => hide(id, false), (isLeaving) => {
      api.remove(id, { keepalive: isLeaving }).catch((thrown) => {
        hide(id, false);
        store.report(thrown);
      }).finally(scripts.again);
    });
  };
  const importFiles = async (files: FileList | null) => {
    for (const one of files ?? []) {
      try {
        const added = await api.import(parseJson(await one.text()));
        store.toasts.show(t.imported(added.length));
      } catch (thrown) {
        store.report(asApiError(thrown));
      }
    }
    scripts.again();
  };
  const actions = (
    <>
      <Button icon="plus" kind="primary" onClick={() => setOpen(null)}>{t.add}</Button>
      <Button onClick={() => file.current!.click()}>{t.import}</Button>
      <input
        ref={file}
        type="file"
        hidden
        multiple
        accept=".json,application/json"
        aria-label={t.import}
        onChange={(event) => {
          const input = event.currentTarget;
          void importFiles(input.files).finally(() => input.value = "");
        }}
      />
    </>
  );
  return (
    <section>
      <h2>{t.title}</h2>
      <p class="muted">{t.intro}</p>
      {scripts.error && <ErrorNote title={t.loadFailed} error={scripts.error} onRetry={scripts.again} />}
      {shown === undefined && !scripts.error && <p class="muted" role="status">{texts.loading}</p>}
      {shown?.length === 0 && <EmptyState level={3} title={t.empty} text={t.emptyText}>{actions}</EmptyState>}
      {shown !== undefined && shown.length > 0 && (
        <>
          <div class="actions-row">{actions}</div>
          <SortableList
            items={shown}
            keyOf={({ id }) => id}
            nameOf={({ name }) => nameOf(name)}
            onMove={(from, to) => void save(shown[from]!.id, { order: orderAt(shown, from, to) })}
            label={t.title}
            labels={t.sort}
          >
            {(script) => (
              <Row
                script={script}
                onOpen={() => setOpen(script)}
                onSwitch={(enabled) => save(script.id, { enabled })}
                onRemove={() => remove(script)}
              />
            )}
          </SortableList>
        </>
      )}
      {open !== undefined && (
        <RegexScriptDialog
          script={open ?? undefined}
          api={api}
          onClose={() => {
            setOpen(undefined);
            scripts.again();
          }}
        />
      )}
    </section>
  );
}

function Row(
  { script, onOpen, onSwitch, onRemove }: {
    script: RegexScript;
    onOpen: () => void;
    /** Resolves when the list has been read again. */
    onSwitch: (isOn: boolean) => Promise<unknown>;
    onRemove: () => void;
  },
) {
  const store = useStore();
  const t = texts.regexScripts;
  const { id, name, find, enabled, problem } = script;
  /** Until it's saved. The list may be read for something else before. */
  const [switched, setSwitched] = useState<{ isOn: boolean }>();
  const onChange = async (isOn: boolean) => {
    const mine = { isOn };
    setSwitched(mine);
    await onSwitch(isOn);
    setSwitched((now) => now === mine ? undefined : now);
  };
  return (
    <>
      <button type="button" class="entry-text" onClick={onOpen}>
        <span class="entry-title">
          <VisibleText text={name || t.unnamed} />
        </span>
        <span class="entry-more">
          {problem === undefined ? <VisibleText text={find} /> : t.problems[problem]}
        </span>
      </button>
      <input
        type="checkbox"
        role="switch"
        class="switch"
        aria-label={t.isOn(nameOf(name))}
        checked={switched?.isOn ?? enabled}
        onChange={(event) => void onChange(event.currentTarget.checked)}
      />
      <Menu
        label={t.more(nameOf(name))}
        items={[
          {
            label: t.export,

            onSelect: () => void downloadFile(store, `/api/regex_scripts/${encodeURIComponent(id)}/export`),
          },
          { label: t.remove, icon: "trash", onSelect: onRemove },
        ]}
      />
    </>
  );
}

function nameOf(name: string): string {
  return name === "" ? texts.regexScripts.unnamed : toVisibleText(name);
}

/** Returns the order of a script between those that will be around it. */
function orderAt(scripts: readonly RegexScript[], from: number, to: number): number {
  const others = scripts.filter((_, n) => n !== from);
  const before = others[to - 1]?.order;
  const after = others[to]?.order;
  if (before === undefined) return (after ?? 1) - 1;
  return after === undefined ? before + 1 : (before + after) / 2;
}

/** Parses a file; a text that isn't JSON is refused by the server. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return [];
  }
}
