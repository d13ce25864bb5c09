/** Names of the scopes of notes, and the scopes that a chat offers. */
import type { MemoryScope } from "../../api/types.ts";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import type { Store } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** A scope and its name. */
export interface NamedScope {
  scope: MemoryScope;
  name: string;
}

/** Names a scope: "All chats", "Fox", "Fox with Ada". */
export function getScopeName(store: Store, { kind, id = "", persona_id: personaId }: MemoryScope): string {
  const t = texts.memory.scopes;
  const persona = (of: string) => store.people.persona(of)?.name ?? t.unknown;
  if (kind === "everything") return t.everything;
  if (kind === "folder") return t.folder(id);
  if (kind === "persona") return t.persona(persona(id));
  const character = store.people.character(id)?.name ?? t.unknown;
  return personaId === undefined ? character : t.pair(character, persona(personaId));
}

/** Identifies a scope. */
export function getScopeKey({ kind, id = "", persona_id: personaId = "" }: MemoryScope): string {
  return [kind, id, personaId].join(" ");
}

/** Lists the scopes that fit a chat, the narrowest first. */
export function listChatScopes(store: Store, chat: OpenChat): NamedScope[] {
  const head = chat.head.peek();
  const character = head?.participants?.[0]?.character_id;
  const persona = head?.persona_id ?? store.preferences.settings.peek()?.default_persona_id ?? undefined;
  const folder = head?.folder ?? undefined;
  const scopes: MemoryScope[] = [
    ...(character && persona ? [{ kind: "character" as const, id: character, persona_id: persona }] : []),
    ...(character ? [{ kind: "character" as const, id: character }] : []),
    ...(persona ? [{ kind: "persona" as const, id: persona }] : []),
    ...(folder ? [{ kind: "folder" as const, id: folder }] : []),
    { kind: "everything" as const },
  ];
  return scopes.map((scope) => ({ scope, name: getScopeName(store, scope) }));
}

/** Lists the scopes of all characters, personas and folders that notes can be for. */
export function listAllScopes(store: Store): NamedScope[] {
  const scopes: MemoryScope[] = [
    { kind: "everything" },
    ...store.people.shownPersonas.peek().map(({ id }) => ({ kind: "persona" as const, id })),
    ...store.chats.folders.peek().map((id) => ({ kind: "folder" as const, id })),
  ];
  return scopes.map((scope) => ({ scope, name: getScopeName(store, scope) }));
}
