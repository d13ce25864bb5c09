/**
 * The commands of the open chat. The palette, the slash menu of the composer and the menu of the chat's title all show
 * this list, and run its commands.
 */
import type { PromptTemplate } from "../../api/types.ts";
import { downloadFile } from "../../components/ApiFile.tsx";
import type { IconName } from "../../components/Icon.tsx";
import type { MenuItem } from "../../components/overlays/Menu.tsx";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import {
  COMMAND_NAMES,
  type CommandActions,
  type CommandName,
  isCommandPossible,
  runCommand,
} from "../../state/chat/slash_commands.ts";
import type { Store } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { openChatPanel } from "./panels/panels.tsx";

/** What a chat can be downloaded as. Names of formats are the same in all languages. */
export const EXPORTS = [
  { format: "markdown", name: "Markdown" },
  { format: "tavern", name: "JSONL" },
  { format: "json", name: "JSON" },
];

/** Returns the address of a chat's file. @param format One of `EXPORTS`. */
export function toExportPath(chatId: string, format: string): string {
  return `/api/conversations/${encodeURIComponent(chatId)}/export?format=${format}`;
}

const ICONS: Record<CommandName, IconName> = {
  new: "plus",
  temporary: "temporary",
  title: "pencil",
  pin: "pin",
  move: "folder",
  export: "export",
  model: "plug",
  persona: "user",
  image: "wand",
  insert: "clip",
  lorebook: "book",
  regenerate: "redo",
  continue: "forward",
  write: "quill",
  fork: "branch",
  hide: "eyeOff",
  delete: "trash",
  search: "search",
  print: "print",
  recall: "search",
  files: "library",
  options: "sliders",
  preview: "show",
  history: "history",
  discard: "trash",
};

/** One command of the open chat. */
interface ChatCommand {
  name: CommandName;
  icon: IconName;
  run(rest?: string): void;
}

/** Returns the commands that would do something in the open chat now. */
export function listChatCommands(store: Store, chat: OpenChat): ChatCommand[] {
  const actions = createCommandActions(store, chat);
  return COMMAND_NAMES.filter((name) => isCommandPossible(name, chat)).map((name) => ({
    name,
    icon: ICONS[name],
    run: (rest = "") => runCommand(name, rest, chat, actions),
  }));
}

/** The menu of the title, in groups. The header has the others, or the messages. */
const MENU: readonly (readonly CommandName[])[] = [
  ["title", "pin", "move", "fork"],
  ["search", "files", "options"],
  ["export", "print", "preview", "history"],
  ["discard"],
];

/** Returns the items of the title's menu. @param shown Commands that have a button next to it. */
export function listTitleMenu(store: Store, chat: OpenChat, shown: readonly CommandName[]): (MenuItem | "line")[] {
  const commands = listChatCommands(store, chat);
  const groups = MENU.map((names) =>
    commands.filter(({ name }) => names.includes(name) && !shown.includes(name))
      .sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name))
      .flatMap(({ name, icon, run }): MenuItem[] => {
        if (name === "export") {
          return EXPORTS.map((each) => ({
            label: texts.nav.exportAs(each.name),
            icon,
            href: toExportPath(chat.id, each.format),
          }));
        }
        return [{ label: getMenuLabel(name, store, chat), icon, isDanger: name === "discard", onSelect: () => run() }];
      })
  ).filter((group) => group.length > 0);
  return groups.flatMap((group, n) => n === 0 ? group : ["line" as const, ...group]);
}

/** Menus say in a word or two what the slash menu explains. */
function getMenuLabel(name: CommandName, store: Store, chat: OpenChat): string {
  const { nav, chat: t } = texts;
  const labels: Partial<Record<CommandName, string>> = {
    title: nav.rename,
    pin: store.chats.items.peek().find(({ id }) => id === chat.id)?.pinned ? nav.unpin : nav.pin,
    move: nav.file,
    fork: t.forkLast,
    search: t.search.label,
    files: t.files.title,
    options: t.options.title,
    print: nav.print,
    preview: t.preview.title,
    history: t.history.title,
    discard: nav.delete,
  };
  return labels[name] ?? "";
}

/** Returns the actions for the open chat. */
export function createCommandActions(store: Store, chat: OpenChat): CommandActions {
  return {
    open(what) {
      if (what === "new") store.router.go("/new");
      else if (what === "temporary") store.router.go("/temporary");
      else if (what === "model") chat.picker.value = { kind: "chat" };
      else if (what === "persona") store.router.go("/settings/personas");
      else if (what === "lorebook") openLorebook(store, chat);
      else openChatPanel(store, what);
    },
    draw: (prompt) => chat.drawing.value = prompt,
    speakAs: (name) => void speakAs(store, chat, name).catch((thrown) => store.report(thrown)),
    fork: (messageId) =>
      void import("./messages/MessageActionBar.tsx").then(({ forkChat }) => forkChat(store, chat, messageId)),
    remove: (messageId) =>
      void store.deleteMessage(chat, messageId, false, { done: texts.chat.removed, undo: texts.undo }),
    print: () => store.printing.value = chat.id,
    ask: (what) => chat.question.value = what,
    pin: () => {
      const isPinned = store.chats.items.peek().find(({ id }) => id === chat.id)?.pinned;
      store.changeChat(chat.id, { pinned: isPinned ? null : true });
    },
    export(format) {
      const known = EXPORTS.find((each) => [each.format, each.name.toLowerCase()].includes(format.toLowerCase()));
      void downloadFile(store, toExportPath(chat.id, (known ?? EXPORTS[0]!).format));
    },
    discard: () => store.deleteChats([chat.id], { done: texts.nav.removed, undo: texts.undo }),
    fail: (thrown) => store.report(thrown),
  };
}

/** The lorebook inside the character's card. */
function openLorebook(store: Store, chat: OpenChat): void {
  const id = chat.head.peek()?.participants?.[0]?.character_id;
  if (id !== undefined) store.router.go(`/characters/${encodeURIComponent(id)}/edit#lorebook`);
}

async function speakAs(store: Store, chat: OpenChat, name: string): Promise<void> {
  // Those added elsewhere count, too.
  await store.people.refreshPersonas();
  const lowerName = name.toLocaleLowerCase();
  const personas = store.people.shownPersonas.peek().map((persona) => ({
    ...persona,
    name: persona.name.toLocaleLowerCase(),
  }));
  const found = personas.find((persona) => persona.name === lowerName) ??
    personas.find((persona) => persona.name.startsWith(lowerName));
  if (found === undefined) return store.toasts.show(texts.chat.noPersona(name), { isError: true });
  await chat.speakAs(found.id);
}

/** Id of the list, for the composer's ARIA attributes. */
export const LIST_ID = "composer-commands";

/** An entry of the list. */
export type Listed =
  | { kind: "command"; name: CommandName }
  | { kind: "template"; name: string; template: PromptTemplate };

/** Id of one option. */
export function toOptionId({ kind, name }: Listed): string {
  return kind === "command" ? `${LIST_ID}-${name}` : `${LIST_ID}-template-${name}`;
}
