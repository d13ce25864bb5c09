/** Slash commands of the composer, and the variables of prompt templates. */
import { foldForSearch } from "../../../../services/json/search_fold.ts";
import type { OpenChat } from "./open_chat.ts";
import type { PromptTemplate } from "../../api/types.ts";

/** The names of the commands; their labels are in the texts. */
export const COMMAND_NAMES = [
  "new",
  "temporary",
  "title",
  "pin",
  "move",
  "export",
  "model",
  "persona",
  "image",
  "insert",
  "lorebook",
  "regenerate",
  "continue",
  "write",
  "fork",
  "hide",
  "delete",
  "search",
  "print",
  "recall",
  "files",
  "options",
  "preview",
  "history",
  "discard",
] as const;

/** One of them. */
export type CommandName = (typeof COMMAND_NAMES)[number];

/** Actions that the views implement. The chat implements the others. */
export interface CommandActions {
  open(
    what:
      | "new"
      | "temporary"
      | "model"
      | "persona"
      | "lorebook"
      | "options"
      | "preview"
      | "history"
      | "recall"
      | "files",
  ): void;
  /** @param prompt The text after the command; empty to have a prompt written from the last messages. */
  draw(prompt: string): void;
  /** Switches to the persona of this name. */
  speakAs(name: string): void;
  fork(messageId: string): void;
  remove(messageId: string): void;
  print(): void;
  /** Opens a dialog about the chat in the list. */
  ask(what: "rename" | "folder"): void;
  pin(): void;
  /** @param format Such as `markdown`; that by default. */
  export(format: string): void;
  /** Moves the chat to the trash. */
  discard(): void;
  fail(thrown: unknown): void;
}

type Command = {
  /** False if it would do nothing. */
  isPossible(chat: OpenChat): boolean;
  run(chat: OpenChat, rest: string, actions: CommandActions): void;
};

const last = (chat: OpenChat) => chat.lastMessage.peek();
const isIdle = (chat: OpenChat) => !chat.replies.isRunning.peek();
const hasReply = (chat: OpenChat) => isIdle(chat) && last(chat)?.role === "assistant";
const hasMessages = (chat: OpenChat) => isIdle(chat) && last(chat) !== undefined;
const isStored = (chat: OpenChat) => !chat.isNew && !chat.isTemporary;
const always = () => true;

const COMMANDS: Record<CommandName, Command> = {
  new: { isPossible: always, run: (_, __, actions) => actions.open("new") },
  temporary: { isPossible: always, run: (_, __, actions) => actions.open("temporary") },
  title: {
    isPossible: isStored,
    run: (chat, rest, actions) => rest === "" ? actions.ask("rename") : void chat.rename(rest).catch(actions.fail),
  },
  pin: { isPossible: isStored, run: (_, __, actions) => actions.pin() },
  move: { isPossible: isStored, run: (_, __, actions) => actions.ask("folder") },
  export: { isPossible: isStored, run: (_, rest, actions) => actions.export(rest) },
  model: {
    isPossible: always,
    run: (chat, rest, actions) => {
      if (rest === "") actions.open("model");
      else void chat.change({ model: rest }).catch(actions.fail);
    },
  },
  persona: {
    isPossible: (chat) => !chat.isTemporary,
    run: (_, rest, actions) => rest === "" ? actions.open("persona") : actions.speakAs(rest),
  },
  image: {
    isPossible: (chat) => !chat.isTemporary && last(chat) !== undefined,
    run: (_, rest, actions) => actions.draw(rest),
  },
  insert: {
    isPossible: (chat) => chat.hasServerTexts.peek(),
    run: (chat) => void (chat.isInserting.value = true),
  },
  lorebook: {
    isPossible: (chat) => (chat.head.peek()?.participants?.length ?? 0) > 0,
    run: (_, __, actions) => actions.open("lorebook"),
  },
  regenerate: { isPossible: hasReply, run: (chat) => chat.replies.regenerate(last(chat)!.id) },
  continue: { isPossible: hasReply, run: (chat) => chat.replies.continueReply(last(chat)!.id) },
  write: {
    isPossible: (chat) => isStored(chat) && hasMessages(chat),
    run: (chat) => void chat.replies.impersonate(),
  },
  fork: {
    isPossible: (chat) => isStored(chat) && hasMessages(chat),
    run: (chat, _, actions) => actions.fork(last(chat)!.id),
  },
  hide: { isPossible: hasMessages, run: (chat) => void chat.actions.setHidden(last(chat)!.id, !last(chat)!.hidden) },
  delete: { isPossible: hasMessages, run: (chat, _, actions) => actions.remove(last(chat)!.id) },
  search: {
    isPossible: isStored,
    run: (chat, rest) => {
      chat.search.isOpen.value = true;
      if (rest !== "") chat.search.type(rest);
    },
  },
  print: { isPossible: (chat) => last(chat) !== undefined, run: (_, __, actions) => actions.print() },
  recall: { isPossible: (chat) => !chat.isTemporary, run: (_, __, actions) => actions.open("recall") },
  files: { isPossible: isStored, run: (_, __, actions) => actions.open("files") },
  options: { isPossible: always, run: (_, __, actions) => actions.open("options") },
  preview: { isPossible: isStored, run: (_, __, actions) => actions.open("preview") },
  history: { isPossible: isStored, run: (_, __, actions) => actions.open("history") },
  discard: { isPossible: isStored, run: (_, __, actions) => actions.discard() },
};

/** Returns the commands that start with the word after the `/`, while the text is nothing else. */
export function findCommands(text: string, chat: OpenChat): CommandName[] {
  const typed = /^\/([a-z]*)$/i.exec(text)?.[1]?.toLowerCase();
  if (typed === undefined) return [];
  return COMMAND_NAMES.filter((name) => name.startsWith(typed) && COMMANDS[name].isPossible(chat));
}

/** Parses a text as a command; undefined if it is an ordinary message. */
export function parseCommand(text: string, chat: OpenChat): { name: CommandName; rest: string } | undefined {
  const match = /^\/([a-z]+)(?:[ \t]+([^\n]*))?$/i.exec(text.trim());
  const name = COMMAND_NAMES.find((each) => each === match?.[1]?.toLowerCase());
  if (name === undefined || !COMMANDS[name].isPossible(chat)) return undefined;
  return { name, rest: match?.[2]?.trim() ?? "" };
}

/** Returns whether a command would do something in a chat now. */
export function isCommandPossible(name: CommandName, chat: OpenChat): boolean {
  return COMMANDS[name].isPossible(chat);
}

/** Runs a command. */
export function runCommand(name: CommandName, rest: string, chat: OpenChat, actions: CommandActions): void {
  COMMANDS[name].run(chat, rest, actions);
}

/** Names of prompt templates that the server accepts. */
export const TEMPLATE_NAME = /^[\p{L}\p{N}_-]{1,40}$/u;

/** A variable: `[[topic]]`. Names of one line, without brackets. */
const VARIABLE = /\[\[([^[\]\n]{1,60})\]\]/g;

/** Whether a quick reply is a script command of SillyTavern, which Parlor doesn't run. */
export function isScriptCommand({ text, button }: PromptTemplate): boolean {
  return button !== undefined && /^\s*\//.test(text);
}

/** Returns the templates whose names start with the word after the `/`, while the text is nothing else. */
export function findTemplates(text: string, templates: readonly PromptTemplate[]): PromptTemplate[] {
  const typed = /^\/([\p{L}\p{M}\p{N}_-]*)$/u.exec(text)?.[1];
  if (typed === undefined) return [];
  return templates.filter((template) =>
    !isScriptCommand(template) && foldForSearch(template.name).startsWith(foldForSearch(typed))
  );
}

const SNIPPET_CHARS = 100;

/** Returns the first line of a template, shortened. */
export function toTemplateSnippet(text: string): string {
  const [line = ""] = text.trim().split("\n", 1);
  const chars = [...line];
  return chars.length > SNIPPET_CHARS ? `${chars.slice(0, SNIPPET_CHARS).join("")}…` : line;
}

/** Lists the variables of a template, each once, in the order of the text. */
export function listVariables(text: string): string[] {
  return [...new Set([...text.matchAll(VARIABLE)].map(([, name]) => name!.trim()).filter((name) => name !== ""))];
}

/** Replaces the variables. Those without a value stay as they are. */
export function fillVariables(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(VARIABLE, (match, name: string) => {
    const key = name.trim();
    return Object.hasOwn(values, key) && values[key] !== "" ? values[key]! : match;
  });
}
