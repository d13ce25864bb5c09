/** What fills the context, by kind: the cost, and what one can do with it. */
import { useState } from "preact/hooks";
import { lorebookApi } from "../../../api/documents.ts";
import { memoryApi } from "../../../api/memories.ts";
import type { ChatOptions, ChatPreview, LorebookEntry, Memory, PromptPiece } from "../../../api/types.ts";
import { Menu, type MenuItem } from "../../../components/overlays/Menu.tsx";
import { describeSent } from "../../documents/sent_document.ts";
import { getContentText } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { type Store, useStore } from "../../../state/store.ts";
import { formatNumber } from "../../../texts/format.ts";
import { texts } from "../../../texts/texts.ts";
import { EditNoteDialog, listAllScopes } from "../../memory/NoteDialog.tsx";
import { getPieceName } from "./piece_names.ts";
import { openChatPanel } from "./panels.tsx";

/** Kind of the tokens that are reserved for the reply. */
const RESERVE = "";
/** Parts that the card fills. */
const OF_CARD = new Set(["description", "personality", "scenario", "examples", "character_note"]);
/** Parts that the preset fills. */
const OF_PRESET = new Set(["main", "preset", "instructions", "chat_begins", "continue", "impersonate", "prefill"]);
/** Characters of a text that names an item. */
const NAME_CHARS = 60;

interface PartCostsProps {
  chat: OpenChat;
  preview: ChatPreview;
  /** Called when something changed that isn't part of the chat. */
  onChanged: () => void;
}

/** One thing in a part: a lorebook entry, a document, a note, a pinned message. */
interface PartItem {
  key: string;
  name: string;
  tokens?: number;
  actions: MenuItem[];
}

/** The largest comes first; what is reserved for the reply is last. */
export function PartCosts({ chat, preview, onChanged }: PartCostsProps) {
  const store = useStore();
  const [note, setNote] = useState<Memory>();
  const t = texts.contextStrip;
  const sums = new Map<string, number>();
  for (const entry of preview.parts) {
    const pieces = entry.pieces ?? [];
    for (const { part, tokens } of pieces.length > 0 ? pieces : [entry]) {
      sums.set(part, (sums.get(part) ?? 0) + tokens);
    }
  }
  const pieces = preview.parts.flatMap(({ pieces = [] }) => pieces);
  // What is always sent, or stays from an earlier turn, costs nothing new.
  const found = pieces.filter(({ entry }) => entry?.reason.kind === "key" || entry?.reason.kind === "recursion")
    .reduce((sum, { tokens }) => sum + tokens, 0);
  const rows = [...sums].sort(([, a], [, b]) => b - a);
  const most = Math.max(preview.context_size, preview.tokens + preview.answer_tokens);
  const act = (work: () => Promise<unknown>) => void work().then(onChanged, (thrown) => store.report(thrown));
  const itemsOf: Record<string, () => PartItem[]> = {
    lorebook: () => listEntries(store, pieces, act),
    documents: () => listDocuments(chat, preview, act),
    memory: () => listNotes(store, preview, act, setNote),
    pinned: () => listPinned(chat),
  };
  return (
    <section aria-labelledby="preview-costs">
      <h3 id="preview-costs">{t.parts}</h3>
      <ul class="part-costs">
        {[...rows, [RESERVE, preview.answer_tokens] as const].map(([kind, tokens]) => {
          const name = kind === RESERVE ? t.reserve : getPieceName(kind);
          const actions = listActions(store, chat, preview, kind, act);
          const items = itemsOf[kind]?.() ?? [];
          return (
            <li key={kind}>
              <span>{name}</span>
              <progress aria-hidden="true" max={most} value={tokens} />
              <span>
                {texts.chat.tokens(tokens)}
                {kind === "lorebook" && found > 0 && <small>{t.found(formatNumber(found))}</small>}
              </span>
              {actions.length > 0 && <Menu label={t.actions(name)} items={actions} />}
              {items.length > 0 && (
                <ul class="part-items" aria-label={name}>
                  {items.map((item) => (
                    <li key={item.key}>
                      <span>{item.name}</span>
                      {item.tokens !== undefined && <span>{texts.chat.tokens(item.tokens)}</span>}
                      {item.actions.length > 0 && <Menu label={t.actions(item.name)} items={item.actions} />}
                    </li>
                  ))}
                </ul>
              )}
            </li>
          );
        })}
      </ul>
      {note && (
        <EditNoteDialog
          note={note}
          scopes={listAllScopes(store)}
          onSaved={onChanged}
          onClose={() => setNote(undefined)}
        />
      )}
    </section>
  );
}

type Act = (work: () => Promise<unknown>) => void;

/** What can be done with a whole part. */
function listActions(store: Store, chat: OpenChat, preview: ChatPreview, kind: string, act: Act): MenuItem[] {
  const t = texts.contextStrip;
  const inOptions = (label: string, anchor: string): MenuItem => ({
    label,
    icon: "pencil",
    onSelect: () => openChatPanel(store, "options", anchor),
  });
  /** Clears an option of the chat; Undo restores it. */
  const clear = (label: string, options: ChatOptions): MenuItem => ({
    label,
    icon: "close",
    onSelect: () => {
      const names = Object.keys(options) as (keyof ChatOptions)[];
      const before = Object.fromEntries(names.map((name) => [name, chat.options.peek()[name] ?? null]));
      act(async () => {
        await chat.change(options);
        const run = () => act(() => chat.change(before));
        store.toasts.show(t.dropped, { action: { label: texts.undo, run } });
      });
    },
  });
  const { summary, note, chapters } = chat.options.value;
  const settings = store.preferences.settings.value;
  const members = chat.options.value.participants ?? [];
  const ofPreset: MenuItem[] = preview.preset
    ? [{ label: t.openPreset, icon: "sliders", href: `/settings/presets/${encodeURIComponent(preview.preset.id)}` }]
    : [];
  if (OF_CARD.has(kind)) {
    return members.map(({ character_id: id }) => ({
      label: t.openCard(store.people.character(id)?.name ?? ""),
      icon: "pencil",
      href: `/characters/${encodeURIComponent(id)}/edit`,
    }));
  }
  switch (kind) {
    case "history":
      return [
        ...(settings && !settings.auto_summary
          ? [
            {
              label: t.summarizeOlder,
              onSelect: () => act(() => store.preferences.change({ auto_summary: true })),
            } satisfies MenuItem,
          ]
          : []),
        inOptions(t.summarize, "options-summary"),
      ];
    case "summary":
      return [
        inOptions(t.summarize, "options-summary"),
        ...(summary ? [clear(t.drop, chapters ? { summary: null, chapters: null } : { summary: null })] : []),
      ];
    case "note":
      return [inOptions(t.edit, "options-told"), ...(note ? [clear(t.drop, { note: null })] : [])];
    case "system_prompt":
      return [inOptions(t.edit, "options-told")];
    case "main":
      return [inOptions(t.edit, "options-told"), ...ofPreset];
    case "persona": {
      const persona = store.people.persona(chat.personaId.value);
      return persona
        ? [
          { label: t.openPersona, icon: "pencil", href: `/settings/personas/${encodeURIComponent(persona.id)}` },
          { label: texts.personas.none, icon: "close", onSelect: () => act(() => chat.speakAs(null)) },
        ]
        : [];
    }
    case "tools":
      return [clear(t.toolsOff, { tools: false })];
    case "documents":
      return [inOptions(t.chooseDocuments, "options-documents")];
    case "lorebook":
      return [inOptions(t.chooseLorebooks, "options-world")];
    case "memory":
      return [{ label: texts.memory.all, icon: "bulb", href: "/settings/memory" }];
    case RESERVE:
      return [inOptions(t.changeReserve, "options-sampling")];
    default:
      return OF_PRESET.has(kind) ? ofPreset : [];
  }
}

/** Entries can be kept always or switched off; those of a card are changed in it. */
function listEntries(store: Store, pieces: readonly PromptPiece[], act: Act): PartItem[] {
  const t = texts.contextStrip;
  return pieces.flatMap(({ entry, tokens }) => {
    if (entry === undefined) return [];
    const { lorebook_id: book, entry_id: id } = entry;
    const card = /^character:(.+)$/.exec(book)?.[1];
    const change = (changes: Partial<LorebookEntry>, undo: Partial<LorebookEntry>, done: string) => () =>
      act(async () => {
        await changeEntry(store, book, id, changes);
        const run = () => act(() => changeEntry(store, book, id, undo));
        store.toasts.show(done, { action: { label: texts.undo, run } });
      });
    const actions: MenuItem[] = card !== undefined
      ? [{ label: t.openCard(""), icon: "pencil", href: `/characters/${encodeURIComponent(card)}/edit` }]
      : [
        ...(entry.reason.kind === "constant" ? [] : [
          {
            label: t.keep,
            icon: "pin",
            onSelect: change({ constant: true }, { constant: false }, t.kept),
          } satisfies MenuItem,
        ]),
        { label: t.switchOff, icon: "close", onSelect: change({ enabled: false }, { enabled: true }, t.dropped) },
        { label: t.openLorebook, icon: "pencil", href: `/settings/lorebooks/${encodeURIComponent(book)}` },
      ];
    const name = texts.chatOptions.fired(entry.lorebook_name, entry.entry_name);
    return [{ key: `${book} ${id}`, name, tokens, actions }];
  });
}

/** Changes one entry of a stored lorebook. @throws {ApiError} */
async function changeEntry(store: Store, book: string, id: string, changes: Partial<LorebookEntry>): Promise<void> {
  const api = lorebookApi(store.api.client);
  const { document, version } = await api.read(book);
  const { name, enabled, scope, character_ids, persona_ids, book: content } = document;
  const at = findEntryIndex(content.entries, id);
  const entries = content.entries.map((entry, index) => index === at ? { ...entry, ...changes } : entry);
  const draft = { name, enabled, scope, character_ids, persona_ids, book: { ...content, entries } };
  await api.save(book, draft, version);
}

/** Entries are named by their ids; those without one, and further ones with the same, by their places. */
function findEntryIndex(entries: readonly LorebookEntry[], wanted: string): number {
  const used = new Set<string>();
  return entries.findIndex(({ id: given }, index) => {
    let id = typeof given === "string" || typeof given === "number" ? String(given) : `#${index}`;
    if (used.has(id)) id = `${id}#${index}`;
    used.add(id);
    return id === wanted;
  });
}

/** Documents of the chat can be sent as a whole or removed; others came with a message, a character or a persona. */
function listDocuments(chat: OpenChat, { documents }: ChatPreview, act: Act): PartItem[] {
  const t = texts.documents;
  const uses = chat.options.value.documents ?? [];
  return documents.filter(({ pages }) => pages !== "").map((document) => {
    const { id, name, tokens } = document;
    const use = uses.find((each) => each.id === id);
    const change = (documents: ChatOptions["documents"]) => act(() => chat.change({ documents }));
    const set = (kind: "auto" | "whole") => change(uses.map((each) => each.id === id ? { id, use: kind } : each));
    const others = uses.filter((each) => each.id !== id);
    const actions: MenuItem[] = use === undefined ? [] : [
      { label: t.auto, isChecked: (use.use ?? "auto") === "auto", onSelect: () => set("auto") },
      { label: t.sendAll, isChecked: use.use === "whole", onSelect: () => set("whole") },
      { label: t.remove(name), icon: "close", onSelect: () => change(others.length === 0 ? null : others) },
    ];
    return { key: id, name: `${name || t.untitled} (${describeSent(document).text})`, tokens, actions };
  });
}

function listNotes(store: Store, { memories }: ChatPreview, act: Act, onEdit: (note: Memory) => void): PartItem[] {
  const api = memoryApi(store.api.client);
  const t = texts.contextStrip;
  return memories.map(({ id, text, tokens }) => ({
    key: id,
    name: text.slice(0, NAME_CHARS),
    tokens,
    actions: [
      { label: t.edit, icon: "pencil", onSelect: () => act(async () => onEdit((await api.read(id)).note)) },
      { label: texts.memory.remove, icon: "trash", onSelect: () => act(() => api.remove(id)) },
    ],
  }));
}

function listPinned(chat: OpenChat): PartItem[] {
  return chat.pages.items.value.filter(({ pinned }) => pinned).map(({ id, content }) => ({
    key: id,
    name: getContentText(content).slice(0, NAME_CHARS),
    actions: [{
      label: texts.chat.unpinPrompt,
      icon: "pin",
      onSelect: () => void chat.actions.setPinned(id, false),
    }],
  }));
}
