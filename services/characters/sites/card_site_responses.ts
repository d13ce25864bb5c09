/**
 * Parses URLs and responses of the card site, and character pages of other sites. The responses are undocumented, so
 * any field may be missing or have another type.
 */
import { AppError } from "../../errors.ts";
import { asArray, asObject, asString, isJsonObject, type JsonObject } from "../../json/type_guards.ts";

/** A search result, as returned by our API. */
export interface FoundCard {
  /** `creator/slug` */
  id: string;
  name: string;
  tagline: string;
  creator: string;
  tags: string[];
  /** URL path on our server. */
  avatar_url: string;
  /** The site's page. */
  page_url: string;
  downloads: number | null;
  stars: number | null;
  updated_at: string | null;
}

const encoder = new TextEncoder();

const MAX_TEXT = 500;
const MAX_TAGS = 50;

/** What answers are about: results of a search, a character of the card site, and of two other sites. */
export type SiteAnswerKind = "search" | "character" | "pygmalion" | "janny";

/** What is used of an answer; nothing if it has another format. */
export interface SiteAnswer {
  /** Results of a search, without the fields that aren't used. */
  nodes?: JsonObject[];
  /** The card site has the character. */
  isFound?: boolean;
  /** URL of the card's file or image, as the site sent it. */
  url?: string;
  /** JSON of the card. */
  card?: Uint8Array<ArrayBuffer>;
}

/** More results than sites send. */
const MAX_NODES = 500;
const MAX_URL = 4_000;
const NODE_FIELDS = ["fullPath", "name", "tagline", "starCount", "nChats", "lastActivityAt"];

/** Reads an answer. @throws {SyntaxError} if it isn't JSON */
export function readSiteAnswer(kind: SiteAnswerKind, bytes: Uint8Array): SiteAnswer {
  const answer: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (!isJsonObject(answer)) return {};
  if (kind === "search") return { nodes: parseNodes(answer) };
  if (kind === "janny") return answer.status === "ok" ? { url: toUrl(answer.downloadUrl) } : {};
  if (kind === "pygmalion") {
    const { character } = answer;
    if (!isJsonObject(character)) return {};
    const url = toUrl(asObject(character.data).avatar);
    return { url, card: encoder.encode(JSON.stringify(character)) };
  }
  const { node } = answer;
  if (!isJsonObject(node)) return {};
  const card = toV2Card(node);
  return { isFound: true, url: toUrl(node.max_res_url), card: card && encoder.encode(JSON.stringify(card)) };
}

/** Checks what a child of the sandbox has read: a file may have taken control of it. */
export function parseSiteAnswer(value: unknown, card: Uint8Array<ArrayBuffer> | undefined): SiteAnswer {
  const { nodes, isFound, url } = asObject(value);
  return {
    nodes: nodes === undefined ? undefined : parseNodes({ nodes }),
    isFound: isFound === true,
    url: asString(url),
    card,
  };
}

function toUrl(value: unknown): string | undefined {
  return typeof value === "string" && value.length <= MAX_URL ? value : undefined;
}

/** Returns the results of a search, in the current or the older format, with the fields that are used. */
function parseNodes(answer: JsonObject): JsonObject[] | undefined {
  const { nodes } = isJsonObject(answer.data) ? answer.data : answer;
  return Array.isArray(nodes) ? nodes.filter(isJsonObject).slice(0, MAX_NODES).map(pickNode) : undefined;
}

function pickNode(node: JsonObject): JsonObject {
  const picked: JsonObject = { topics: toTexts(node.topics), nsfw_image: isForAdults(node) };
  for (const field of NODE_FIELDS) {
    const value = node[field];
    if (typeof value === "string") picked[field] = value.slice(0, MAX_TEXT).toWellFormed();
    else if (typeof value === "number" || typeof value === "boolean") picked[field] = value;
  }
  return picked;
}

/** Reports whether the site marks a character as adult content. */
export function isForAdults({ nsfw_image, labels, topics }: JsonObject): boolean {
  const names = [labels, topics].flatMap(asArray)
    .map((label) => isJsonObject(label) ? label.title ?? label.name : label);
  return nsfw_image === true || names.some((word) => typeof word === "string" && /^(nsfw|nsfl)$/i.test(word.trim()));
}

/** Converts a result. @returns `undefined` without a valid path or name */
export function toFoundCard(node: JsonObject, pages: string): FoundCard | undefined {
  const card = typeof node.fullPath === "string" ? parseSiteCard(node.fullPath) : undefined;
  if (card === undefined || typeof node.name !== "string") return undefined;
  return {
    id: `${card.creator}/${card.slug}`,
    name: toText(node.name),
    tagline: toText(node.tagline),
    creator: card.creator,
    tags: toTexts(node.topics),
    avatar_url: toAvatarUrl(card),
    page_url: `${pages}/characters/${formatSitePath(card)}`,
    downloads: toNumber(node.nChats),
    stars: toNumber(node.starCount),
    updated_at: toTime(node.lastActivityAt),
  };
}

/** Returns the URL path of the image on our server. */
function toAvatarUrl(card: SiteCard): string {
  return `/api/characters/search/${formatSitePath(card)}/avatar`;
}

/**
 * Converts a character definition, whose fields have other names, to a V2 card.
 *
 * @returns `undefined` without a definition.
 */
function toV2Card(node: JsonObject): JsonObject | undefined {
  const { definition } = node;
  if (!isJsonObject(definition)) return undefined;
  const card = typeof node.fullPath === "string" ? parseSiteCard(node.fullPath) : undefined;
  const text = (value: unknown) => typeof value === "string" ? value : "";
  return {
    spec: "chara_card_v2",
    spec_version: "2.0",
    data: {
      name: text(definition.name) || text(node.name),
      description: text(definition.personality),
      personality: text(definition.tavern_personality),
      scenario: text(definition.scenario),
      first_mes: text(definition.first_message),
      mes_example: text(definition.example_dialogs),
      creator_notes: text(definition.description),
      system_prompt: text(definition.system_prompt),
      post_history_instructions: text(definition.post_history_instructions),
      alternate_greetings: Array.isArray(definition.alternate_greetings) ? definition.alternate_greetings : [],
      ...(isJsonObject(definition.embedded_lorebook) ? { character_book: definition.embedded_lorebook } : {}),
      tags: toTexts(node.topics),
      creator: card?.creator ?? "",
      character_version: "",
      extensions: isJsonObject(definition.extensions) ? definition.extensions : {},
    },
  };
}

function toText(value: unknown): string {
  return typeof value === "string" ? value.slice(0, MAX_TEXT).toWellFormed() : "";
}

function toTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string").slice(0, MAX_TAGS).map(toText) : [];
}

function toNumber(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function toTime(value: unknown): string | null {
  const ms = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}

/** A character on the card site. */
export interface SiteCard {
  creator: string;
  slug: string;
}

/** Base URLs of a card site. */
export interface SiteHosts {
  /** Search and characters. */
  api: string;
  /** Images of characters. */
  images: string;
  /** Web pages. */
  pages: string;
}

/** Hosts of the public site. They all show the same pages. */
const PAGE_HOSTS = new Set([
  ...["chub.ai", "www.chub.ai", "venus.chub.ai", "characterhub.org", "www.characterhub.org"],
  ...["chub.chat", "www.chub.chat"],
]);
const API_HOSTS = new Set(["api.chub.ai", "gateway.chub.ai"]);

const SEGMENT = /^[^/\\?#%\s\p{Cc}]{1,128}$/u;

/** Returns the hosts of a configured site. A mirror serves everything itself. @param siteUrl `card_site_url` */
export function getSiteHosts(siteUrl: string): SiteHosts {
  const api = siteUrl.replace(/\/+$/, "");
  if (!API_HOSTS.has(new URL(siteUrl).hostname)) return { api, images: api, pages: api };
  return { api, images: "https://avatars.charhub.io", pages: "https://chub.ai" };
}

/** Parses `creator/slug`. @returns `undefined` if it's invalid */
export function parseSiteCard(fullPath: string): SiteCard | undefined {
  const parts = fullPath.split("/");
  const [creator, slug] = parts;
  const isPlain = (part: string | undefined) =>
    part !== undefined && SEGMENT.test(part) && part !== "." && part !== "..";
  return parts.length === 2 && isPlain(creator) && isPlain(slug) ? { creator: creator!, slug: slug! } : undefined;
}

/** Returns the escaped path of a character. */
export function formatSitePath({ creator, slug }: SiteCard): string {
  return `${encodeURIComponent(creator)}/${encodeURIComponent(slug)}`;
}

/**
 * Finds the character whose page a URL shows.
 *
 * @returns `undefined` for other sites.
 * @throws {AppError} `invalid_request` for another page of the site
 */
export function findSiteCard(url: URL, hosts: SiteHosts): SiteCard | undefined {
  if (!PAGE_HOSTS.has(url.hostname) && url.origin !== new URL(hosts.pages).origin) return undefined;
  const [kind, creator, slug] = url.pathname.split("/").filter((part) => part !== "");
  if (kind !== "characters") {
    // Files of a mirror are direct links.
    if (!PAGE_HOSTS.has(url.hostname)) return undefined;
    throw new AppError("invalid_request", `Can't import from "${url.host}": this page isn't a character's page`);
  }
  const card = parseSiteCard(`${decodeText(creator)}/${decodeText(slug)}`);
  if (card === undefined) {
    throw new AppError("invalid_request", `Can't import from "${url.host}": the address doesn't name a character`);
  }
  return card;
}

function decodeText(segment = ""): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return ""; // Not a valid segment
  }
}

/** A fetched card. */
export interface FetchedCard {
  bytes: Uint8Array<ArrayBuffer>;
  contentType: string;
  /** Its image, if that is a separate file. */
  image?: Uint8Array<ArrayBuffer>;
}

/** Requests to a site. They throw the errors of a guarded fetch. */
interface SiteCalls {
  /** Fetches JSON. @throws {AppError} `upstream_error` for anything else */
  fetchAnswer(kind: SiteAnswerKind, url: string, init?: { method: "POST"; body: string }): Promise<SiteAnswer>;
  /** Fetches a file. */
  fetchFile(url: string): Promise<FetchedCard>;
  fetchImage(url: string): Promise<Uint8Array<ArrayBuffer> | undefined>;
}

/** Supported sites besides the card site, for messages. */
export const OTHER_SITES = "pygmalion.chat, jannyai.com, realm.risuai.net, aicharactercards.com";

/** RFC 9562, section 4 */
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i;

/**
 * Recognizes pages of other sites by their full host name, which have single cards. Requests are built from parsed
 * parts.
 *
 * @returns A function that fetches the card; `undefined` for other URLs, which are treated as files.
 * @throws {AppError} `invalid_request` for a page without a character
 */
export function findOtherSite(url: URL): ((calls: SiteCalls) => Promise<FetchedCard>) | undefined {
  const host = url.hostname.replace(/^www\./, "");
  const segments = url.pathname.split("/").filter((part) => part !== "");
  switch (host) {
    case "pygmalion.chat":
      return (calls) => fetchPygmalionCard(calls, findUuid(url));
    case "jannyai.com":
    case "janitorai.com":
      return (calls) => fetchJannyCard(calls, findUuid(url));
    case "realm.risuai.net": {
      if (segments[0] !== "character" || segments[1] === undefined) return undefined;
      const file = `https://realm.risuai.net/api/v1/download/png-v3/${segments[1]}?non_commercial=true`;
      return (calls) => calls.fetchFile(file);
    }
    case "aicharactercards.com": {
      if (segments[0] !== "character-cards" || segments.length !== 3) return undefined;
      const file = `https://aicharactercards.com/wp-json/pngapi/v1/image/${segments[1]}/${segments[2]}`;
      return (calls) => calls.fetchFile(file);
    }
  }
}

async function fetchPygmalionCard(calls: SiteCalls, id: string): Promise<FetchedCard> {
  const host = "server.pygmalion.chat";
  const { card, url } = await calls.fetchAnswer("pygmalion", `https://${host}/api/export/character/${id}/v2`);
  if (card === undefined) throw createUnexpectedError(host);
  const image = url !== undefined && URL.canParse(url) ? await calls.fetchImage(url) : undefined;
  return { bytes: card, contentType: "application/json", image };
}

async function fetchJannyCard(calls: SiteCalls, id: string): Promise<FetchedCard> {
  const host = "api.jannyai.com";
  let answer: SiteAnswer;
  try {
    answer = await calls.fetchAnswer("janny", `https://${host}/api/v1/download`, {
      method: "POST",
      body: JSON.stringify({ characterId: id }),
    });
  } catch (cause) {
    if (!(cause instanceof AppError) || cause.code !== "upstream_error") throw cause;
    const way = "it often refuses servers. Download the card there with a browser and import the file";
    throw new AppError("upstream_error", `${cause.message}; ${way}`, { cause });
  }
  const { url } = answer;
  if (url === undefined || !URL.canParse(url)) throw createUnexpectedError(host);
  return await calls.fetchFile(url);
}

function findUuid(url: URL): string {
  const id = UUID.exec(url.pathname)?.[0] ?? UUID.exec(url.search)?.[0];
  if (id !== undefined) return id.toLowerCase();
  throw new AppError("invalid_request", `Can't import from "${url.host}": the address doesn't name a character`);
}

function createUnexpectedError(host: string): AppError {
  return new AppError("upstream_error", `Can't read the response of "${host}": it has an unknown format`);
}
