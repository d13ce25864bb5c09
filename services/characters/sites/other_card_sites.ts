/** Other card sites: recognizes their pages and fetches single cards. */
import { AppError } from "../../errors.ts";
import { isJsonObject } from "../../json/type_guards.ts";

/** A fetched card. */
export interface FetchedCard {
  bytes: Uint8Array<ArrayBuffer>;
  contentType: string;
  /** Its image, if that is a separate file. */
  image?: Uint8Array<ArrayBuffer>;
}

/** Requests to a site. They throw the errors of a guarded fetch. */
export interface SiteCalls {
  /** Fetches JSON. @throws {AppError} `upstream_error` for anything else */
  json(url: string, init?: { method: "POST"; body: string }): Promise<unknown>;
  /** Fetches a file. */
  file(url: string): Promise<FetchedCard>;
  image(url: string): Promise<Uint8Array<ArrayBuffer> | undefined>;
}

/** Supported sites besides the card site, for messages. */
export const OTHER_SITES = "pygmalion.chat, jannyai.com, realm.risuai.net, aicharactercards.com";

/** RFC 9562, section 4 */
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i;

const encoder = new TextEncoder();

/**
 * Recognizes pages of other sites by their full host name. Requests are built from parsed parts.
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
      return (calls) => calls.file(file);
    }
    case "aicharactercards.com": {
      if (segments[0] !== "character-cards" || segments.length !== 3) return undefined;
      const file = `https://aicharactercards.com/wp-json/pngapi/v1/image/${segments[1]}/${segments[2]}`;
      return (calls) => calls.file(file);
    }
  }
}

async function fetchPygmalionCard(calls: SiteCalls, id: string): Promise<FetchedCard> {
  const host = "server.pygmalion.chat";
  const answer = await calls.json(`https://${host}/api/export/character/${id}/v2`);
  const card = isJsonObject(answer) ? answer.character : undefined;
  if (!isJsonObject(card)) throw unexpectedResponse(host);
  const avatar = isJsonObject(card.data) ? card.data.avatar : undefined;
  const picture = typeof avatar === "string" && URL.canParse(avatar) ? await calls.image(avatar) : undefined;
  return { bytes: encoder.encode(JSON.stringify(card)), contentType: "application/json", image: picture };
}

async function fetchJannyCard(calls: SiteCalls, id: string): Promise<FetchedCard> {
  const host = "api.jannyai.com";
  let answer: unknown;
  try {
    answer = await calls.json(`https://${host}/api/v1/download`, {
      method: "POST",
      body: JSON.stringify({ characterId: id }),
    });
  } catch (cause) {
    if (!(cause instanceof AppError) || cause.code !== "upstream_error") throw cause;
    const way = "it often refuses servers; download the card there with a browser and import the file";
    throw new AppError("upstream_error", `${cause.message}; ${way}`, { cause });
  }
  const file = isJsonObject(answer) && answer.status === "ok" ? answer.downloadUrl : undefined;
  if (typeof file !== "string" || !URL.canParse(file)) throw unexpectedResponse(host);
  return await calls.file(file);
}

function findUuid(url: URL): string {
  const id = UUID.exec(url.pathname)?.[0] ?? UUID.exec(url.search)?.[0];
  if (id !== undefined) return id.toLowerCase();
  throw new AppError("invalid_request", `Can't import from "${url.host}": the address names no character`);
}

function unexpectedResponse(host: string): AppError {
  return new AppError("upstream_error", `Can't understand "${host}": its answer is not of the known form`);
}
