/** API calls for characters, the card site and personas. */
import type {
  Card,
  Character,
  CharacterFolder,
  CharacterItem,
  Conversation,
  DocumentUse,
  Expression,
  FoundCard,
  Page,
  Persona,
  Portrait,
} from "./types.ts";
import { type ApiClient, type RequestOptions, toStrongTag } from "./client.ts";

/** A character with the version of its card. */
export interface VersionedCharacter {
  character: Character;
  /** The ETag of the card, for `If-Match`. */
  version: string;
}

/**
 * Orders of the list; `favorites` has these first, each part by name. `talked` is the page's: the server sorts those by
 * name.
 */
export type CharacterOrder = "name" | "favorites" | "updated" | "talked";

/** A character that a card brought, or that is the same already. */
export interface ImportedCard extends Character {
  isPresent: boolean;
}

/** Filter and order of the list of characters. */
export interface CharacterQuery {
  q: string;
  tag: string;
  /** Only favorites. */
  favorite?: boolean;
  /** Only in this folder; `null` in none. */
  folder?: string | null;
  /** Only these. */
  ids?: readonly string[];
  sort: CharacterOrder;
}

/** A search on the card site. */
export interface CardSiteQuery {
  q: string;
  tags: string;
  sort: string;
  nsfw: boolean;
}

/** Options of a new chat. */
export interface NewChat {
  character_ids: string[];
  persona_id?: string;
  /** Index of the character's greeting, from 0. */
  greeting?: number;
}

/** API calls for characters and personas. All calls throw `ApiError`. */
export interface CharacterApi {
  /** Returns a page of at most `limit` (500) characters. */
  listCharacters(
    query: CharacterQuery,
    limit: number,
    cursor?: string,
    signal?: AbortSignal,
  ): Promise<Page<CharacterItem>>;
  /** Returns the folders that characters are in, by name. */
  listCharacterFolders(): Promise<CharacterFolder[]>;
  /** Returns the characters with these ids that exist; at most 100 ids. */
  listCharactersById(ids: readonly string[]): Promise<CharacterItem[]>;
  getCharacter(id: string): Promise<VersionedCharacter>;
  /** Returns the mood images in the card. */
  listExpressions(id: string): Promise<Expression[]>;
  /** Saves a card or creates a character. With a version, the server refuses (412) if the stored version differs. */
  saveCharacter(id: string, card: Card, version?: string): Promise<VersionedCharacter>;
  /** Replaces the documents of a character. With a version, the server refuses (412) if the stored version differs. */
  saveCharacterDocuments(
    id: string,
    card: Card,
    documents: readonly DocumentUse[],
    version?: string,
  ): Promise<VersionedCharacter>;
  deleteCharacter(id: string, options?: RequestOptions): Promise<void>;
  setCharacterAvatar(id: string, image: Blob): Promise<VersionedCharacter>;
  /** Imports a card file, unless it is there already. */
  importCharacter(file: File): Promise<ImportedCard>;
  /** Imports a card from a link, unless it is there already. */
  importCharacterFrom(url: string): Promise<ImportedCard>;
  /** Restores the built-in character to its original card. */
  restoreBuiltin(): Promise<Character>;
  getPortrait(id: string): Promise<Portrait>;
  startPortrait(id: string): Promise<void>;
  searchCardSite(query: CardSiteQuery, page: string, signal: AbortSignal): Promise<Page<FoundCard>>;
  /** Loads an image from our own server. */
  loadImage(path: string): Promise<Blob>;
  beginChat(beginning: NewChat): Promise<Conversation>;
  listPersonas(): Promise<Persona[]>;
  getPersona(id: string): Promise<{ persona: Persona; version: string }>;
  savePersona(
    id: string,
    fields: {
      name: string;
      description: string;
      placement?: Persona["placement"] | null;
      character_ids?: string[];
      documents?: readonly DocumentUse[];
    },
    version?: string,
  ): Promise<{ persona: Persona; version: string }>;
  /** Creates a persona from the card file of a persona or a character. */
  importPersona(file: File): Promise<Persona>;
  deletePersona(id: string, options?: RequestOptions): Promise<void>;
  setPersonaAvatar(id: string, image: Blob): Promise<Persona>;
}

/** Returns the API path of a character. */
export function characterPath(id: string): string {
  return `/api/characters/${encodeURIComponent(id)}`;
}

/** Returns the API path of a persona. */
export function personaPath(id: string): string {
  return `/api/personas/${encodeURIComponent(id)}`;
}

/** Returns the calls, bound to a client. */
export function characterApi(client: ApiClient): CharacterApi {
  async function json<T>(method: string, path: string, options?: RequestOptions): Promise<T> {
    return await (await client.send(method, path, options)).json() as T;
  }
  async function done(method: string, path: string, options?: RequestOptions): Promise<void> {
    await (await client.send(method, path, options)).body?.cancel();
  }
  async function fetchVersioned<T>(
    method: string,
    path: string,
    options?: RequestOptions,
  ): Promise<{ value: T; version: string }> {
    const response = await client.send(method, path, options);
    return { value: await response.json() as T, version: toStrongTag(response.headers.get("etag")) };
  }
  const importCard = async (path: string, content: RequestOptions): Promise<ImportedCard> => {
    const response = await client.send("POST", `${path}?reuse=true`, content);
    return { ...await response.json() as Character, isPresent: response.status === 200 };
  };
  const character = async (method: string, path: string, options?: RequestOptions): Promise<VersionedCharacter> => {
    const { value, version } = await fetchVersioned<Character>(method, path, options);
    return { character: value, version };
  };
  const persona = async (method: string, path: string, options?: RequestOptions) => {
    const { value, version } = await fetchVersioned<Persona>(method, path, options);
    return { persona: value, version };
  };
  const ifMatch = (version: string | undefined) => version ? { "if-match": version } : undefined;

  return {
    listCharacters({ q, tag, favorite, folder, ids, sort }, limit, cursor, signal) {
      const params = new URLSearchParams({ limit: String(limit), sort: sort === "talked" ? "name" : sort });
      if (ids !== undefined) params.set("ids", ids.join(","));
      if (q.trim() !== "") params.set("q", q.trim());
      if (tag !== "") params.set("tag", tag);
      if (favorite) params.set("favorite", "true");
      if (folder !== undefined) params.set("folder", folder ?? "");
      if (cursor !== undefined) params.set("cursor", cursor);
      return json("GET", `/api/characters?${params}`, { signal });
    },
    listCharacterFolders: () => json("GET", "/api/characters/folders"),
    listCharactersById: (ids) => json("GET", `/api/characters?${new URLSearchParams({ ids: ids.join(",") })}`),
    listExpressions: (id) => json("GET", `${characterPath(id)}/expressions`),
    getCharacter: (id) => character("GET", characterPath(id)),
    saveCharacter: (id, card, version) =>
      character("PUT", characterPath(id), { body: { card }, headers: ifMatch(version) }),
    saveCharacterDocuments: (id, card, documents, version) =>
      character("PUT", characterPath(id), { body: { card, documents }, headers: ifMatch(version) }),
    deleteCharacter: (id, options) => done("DELETE", characterPath(id), options),
    setCharacterAvatar: (id, image) => character("PUT", `${characterPath(id)}/avatar`, { blob: image }),
    importCharacter: (file) => importCard("/api/characters/import", { form: createForm(file) }),
    importCharacterFrom: (url) => importCard("/api/characters/import-url", { body: { url } }),
    restoreBuiltin: () => json("POST", "/api/characters/restore-app", { body: {} }),
    getPortrait: (id) => json("GET", `${characterPath(id)}/avatar/status`),
    startPortrait: (id) => done("POST", `${characterPath(id)}/avatar/generate`, { body: {} }),
    searchCardSite({ q, tags, sort, nsfw }, page, signal) {
      const params = new URLSearchParams({ q, tags, sort, page, nsfw: String(nsfw) });
      return json("GET", `/api/characters/search?${params}`, { signal });
    },
    loadImage: async (path) => await (await client.send("GET", path)).blob(),
    beginChat: (beginning) => json("POST", "/api/conversations", { body: beginning }),
    listPersonas: () => json("GET", "/api/personas"),
    importPersona: (file) => json("POST", "/api/personas/import", { form: createForm(file) }),
    getPersona: (id) => persona("GET", personaPath(id)),
    savePersona: (id, fields, version) => persona("PUT", personaPath(id), { body: fields, headers: ifMatch(version) }),
    deletePersona: (id, options) => done("DELETE", personaPath(id), options),
    setPersonaAvatar: (id, image) => json("PUT", `${personaPath(id)}/avatar`, { blob: image }),
  };
}

function createForm(file: File): FormData {
  const form = new FormData();
  form.set("file", file);
  return form;
}
