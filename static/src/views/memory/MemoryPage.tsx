/** Settings, Memory: proposals that wait, all notes by scope, their history, and whether the model may propose any. */
import { foldForSearch } from "../../../../services/json/search_fold.ts";
import { useEffect, useMemo, useState } from "preact/hooks";
import { memoryApi } from "../../api/memories.ts";
import type { Memory, MemoryProposal, Settings } from "../../api/types.ts";
import { Button, IconButton } from "../../components/Button.tsx";
import { VisibleText } from "../../components/content/VisibleText.tsx";
import { NumberInput, Switch } from "../../components/forms/inputs.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { Menu } from "../../components/overlays/Menu.tsx";
import { newId } from "../../state/app/ids.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { toVisibleText } from "../../texts/visible_text.ts";
import { useResource } from "../hooks.tsx";
import { EditNoteDialog, getScopeKey, getScopeName, listAllScopes, NoteDialog } from "./NoteDialog.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { formatDateTime } from "../../texts/format.ts";

/** The open dialog. */
type Open = { kind: "new" } | { kind: "edit" | "history"; note: Memory } | {
  kind: "proposal";
  proposal: MemoryProposal;
};

/** The page. */
export function MemoryPage() {
  const store = useStore();
  const api = useMemo(() => memoryApi(store.api.client), []);
  const notes = useResource(() => api.list(), "memory");
  const proposals = useResource(() => api.listProposals(), "memory_proposal");
  const [query, setQuery] = useState("");
  const [open, setOpen] = useState<Open>();
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const t = texts.memory;
  const reload = () => {
    notes.again();
    proposals.again();
  };
  useEffect(() => store.people.loadPersonas(), []);
  useEffect(() => {
    for (const { scope } of [...notes.value ?? [], ...proposals.value ?? []]) {
      if (scope.kind === "character" && scope.id !== undefined) store.people.loadCharacter(scope.id);
    }
  }, [notes.value, proposals.value]);
  const folded = foldForSearch(query.trim());
  const shown = notes.value?.filter(({ id, text }) => !hidden.has(id) && foldForSearch(text).includes(folded));
  const groups = [...Map.groupBy(shown ?? [], ({ scope }) => getScopeKey(scope)).values()];
  const scopes = listAllScopes(store);
  const hide = (id: string, isHidden: boolean) =>
    setHidden((before) => new Set([...before].filter((one) => one !== id).concat(isHidden ? [id] : [])));
  const remove = ({ id }: Memory) => {
    hide(id, true);
    store.toasts.offerUndo(t.removed, texts.undo, () => hide(id, false), (isLeaving) => {
      api.remove(id, { keepalive: isLeaving }).catch((thrown) => {
        hide(id, false);
        store.report(thrown);
      }).finally(notes.again);
    });
  };
  const change = (note: Memory, pinned: boolean) =>
    api.save(note.id, { pinned }).then(notes.again, (thrown) => store.report(thrown));
  const close = () => setOpen(undefined);
  const add = <Button icon="plus" kind="primary" onClick={() => setOpen({ kind: "new" })}>{t.add}</Button>;
  return (
    <section>
      <h2>{t.title}</h2>
      <p class="muted">{t.intro}</p>
      <Inbox
        proposals={proposals.value ?? []}
        notes={notes.value ?? []}
        onEdit={(proposal) => setOpen({ kind: "proposal", proposal })}
        onDecided={reload}
      />
      {proposals.error && <ErrorNote title={t.failed} error={proposals.error} onRetry={proposals.again} />}
      {notes.value?.length !== 0 && <div class="actions-row memory-head">{add}</div>}
      {notes.error && <ErrorNote title={t.failed} error={notes.error} onRetry={notes.again} />}
      {!notes.value && !notes.error && <p class="muted" role="status">{texts.loading}</p>}
      {notes.value?.length === 0 && <EmptyState level={3} title={t.empty} text={t.emptyText}>{add}</EmptyState>}
      {(notes.value?.length ?? 0) > 0 && <TextField label={t.search} type="search" value={query} onInput={setQuery} />}
      {shown?.length === 0 && notes.value!.length > 0 && folded !== "" && (
        <>
          <p role="status">{t.noneFound}</p>
          <div class="actions-row">
            <Button onClick={() => setQuery("")}>{texts.search.clear}</Button>
          </div>
        </>
      )}
      {groups.map((group) => {
        const name = getScopeName(store, group[0]!.scope);
        return (
          <section key={getScopeKey(group[0]!.scope)} aria-label={name}>
            <h3>{name}</h3>
            <List label={name}>
              {group.map((note) => (
                <ListRow
                  key={note.id}
                  title={
                    <span class="memory-text">{note.error ? t.unreadable : <VisibleText text={note.text} />}</span>
                  }
                  text={note.pinned ? t.pinned : undefined}
                  onClick={() => setOpen({ kind: "edit", note })}
                  end={
                    <Menu
                      label={t.actions(toVisibleText(note.text.slice(0, 40)))}
                      items={[
                        { label: texts.chat.edit, icon: "pencil", onSelect: () => setOpen({ kind: "edit", note }) },
                        {
                          label: note.pinned ? t.unpin : t.pin,
                          icon: "pin",
                          onSelect: () => void change(note, !note.pinned),
                        },
                        ...(note.source
                          ? [{ label: t.source, icon: "chat" as const, href: getSourcePath(note.source) }]
                          : []),
                        { label: t.history, icon: "history", onSelect: () => setOpen({ kind: "history", note }) },
                        "line",
                        { label: t.remove, icon: "trash", isDanger: true, onSelect: () => remove(note) },
                      ]}
                    />
                  }
                />
              ))}
            </List>
          </section>
        );
      })}
      <MemorySettings />
      {open?.kind === "new" && (
        <NoteDialog
          draftKey="memory:new"
          title={t.add}
          text=""
          scope={{ kind: "everything" }}
          scopes={scopes}
          onClose={close}
          onSave={async (fields) => {
            await api.save(newId(), fields);
            notes.again();
          }}
        />
      )}
      {open?.kind === "edit" && (
        <EditNoteDialog note={open.note} scopes={scopes} onSaved={notes.again} onClose={close} />
      )}
      {open?.kind === "history" && <MemoryHistory note={open.note} onRestored={notes.again} onClose={close} />}
      {open?.kind === "proposal" && (
        <NoteDialog
          draftKey={`proposal:${open.proposal.id}`}
          title={t.editProposal}
          text={open.proposal.text}
          scope={open.proposal.scope}
          scopes={scopes}
          onClose={close}
          onSave={async (fields) => {
            await api.decide(open.proposal.id, { decision: "accept", ...fields });
            reload();
          }}
        />
      )}
    </section>
  );
}

/** Path of the message that a note comes from. */
function getSourcePath({ conversation_id: id, message_id: mid }: NonNullable<Memory["source"]>): string {
  return `/c/${encodeURIComponent(id)}${mid ? `#${encodeURIComponent(mid)}` : ""}`;
}

/** The proposals, each accepted, edited or dismissed with one tap. */
function Inbox({ proposals, notes, onEdit, onDecided }: {
  proposals: readonly MemoryProposal[];
  notes: readonly Memory[];
  onEdit: (proposal: MemoryProposal) => void;
  onDecided: () => void;
}) {
  const store = useStore();
  const [hiddenIds, setHiddenIds] = useState<ReadonlySet<string>>(new Set());
  const t = texts.memory;
  const waiting = proposals.filter(({ id }) => !hiddenIds.has(id));
  if (waiting.length === 0) return null;
  const decide = (id: string, decision: "accept" | "dismiss") => {
    setHiddenIds((before) => new Set([...before, id]));
    memoryApi(store.api.client).decide(id, { decision }).then(onDecided, (thrown) => {
      setHiddenIds((before) => new Set([...before].filter((one) => one !== id)));
      store.report(thrown);
    });
  };
  return (
    <section aria-labelledby="memory-inbox" class="memory-inbox">
      <h3 id="memory-inbox">{t.inbox(waiting.length)}</h3>
      <ul>
        {waiting.map((proposal) => {
          const replaced = notes.find(({ id }) => id === proposal.replaces);
          return (
            <li key={proposal.id} class="memory-proposal">
              <p class="memory-text">
                <VisibleText text={proposal.text} />
              </p>
              {replaced && <p class="hint">{t.replaces(toVisibleText(replaced.text))}</p>}
              <p class="hint">
                {getScopeName(store, proposal.scope)}
                {proposal.source && (
                  <>
                    {" · "}
                    <a href={getSourcePath(proposal.source)}>{t.source}</a>
                  </>
                )}
              </p>
              <div class="actions-row">
                <Button icon="check" onClick={() => decide(proposal.id, "accept")}>
                  {replaced ? t.acceptChange : t.accept}
                </Button>
                <IconButton icon="pencil" label={t.editProposal} onClick={() => onEdit(proposal)} />
                <Button kind="quiet" icon="close" onClick={() => decide(proposal.id, "dismiss")}>{t.dismiss}</Button>
              </div>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** Whether the model proposes notes, and how much of the context all notes may have. */
function MemorySettings() {
  const store = useStore();
  const settings = store.preferences.settings.value;
  const t = texts.memory;
  if (!settings) return null;
  const change = (changes: Partial<Settings>) =>
    void store.preferences.change(changes).catch((thrown) => store.report(thrown));
  return (
    <section aria-labelledby="memory-settings">
      <h3 id="memory-settings">{texts.nav.settings}</h3>
      <div class="form">
        <Switch
          id="memory-proposals"
          label={t.proposals}
          hint={t.proposalsHint}
          isOn={settings.memory_proposals}
          onChange={(memory_proposals) => change({ memory_proposals, memory_asked: true })}
        />
        <NumberInput
          id="memory-budget"
          label={t.budget}
          hint={t.budgetHint}
          value={settings.memory_budget_percent}
          min={0}
          max={50}
          isRequired
          onChange={(percent) => percent !== undefined && change({ memory_budget_percent: percent })}
        />
        {settings.memory_proposals && (
          <NumberInput
            id="memory-idle"
            label={t.idle}
            value={settings.memory_idle_minutes}
            min={1}
            max={10_080}
            isRequired
            onChange={(minutes) => minutes !== undefined && change({ memory_idle_minutes: minutes })}
          />
        )}
      </div>
    </section>
  );
}

/** Restoring makes a version of what it replaces. */
function MemoryHistory({ note, onRestored, onClose }: {
  note: Memory;
  onRestored: () => void;
  onClose: () => void;
}) {
  const store = useStore();
  const api = memoryApi(store.api.client);
  const { value, error, again } = useResource(() => api.listVersions(note.id));
  const t = texts.memory;
  const restore = (n: number) =>
    api.restoreVersion(note.id, n).then(() => {
      onRestored();
      onClose();
    }, (thrown) => store.report(thrown));
  return (
    <Dialog title={t.history} onClose={onClose}>
      {error && <ErrorNote title={t.failed} error={error} onRetry={again} />}
      {!value && !error && <p class="muted" role="status">{texts.loading}</p>}
      {value?.length === 0 && <p>{t.noHistory}</p>}
      <ul class="memory-versions">
        {value?.map(({ n, text, created_at }) => (
          <li key={n}>
            <p class="memory-text">
              <VisibleText text={text} />
            </p>
            <p class="hint">{formatDateTime(created_at)}</p>
            <Button icon="restore" onClick={() => void restore(n)}>{t.restore}</Button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
