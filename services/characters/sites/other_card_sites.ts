/** Sites that hand out one card at a time beside the card site: whose page an address is, and what is asked for its card. */
import { AppError } from "../../errors.ts";
import { isJsonObject } from "../../json/type_guards.ts";

/** A card as a site gives it. */
export interface FetchedCard {
  bytes: Uint8Array<ArrayBuffer>;
  contentType: string;
  /** Its picture, where that is a file of its own. */
  picture?: Uint8Array<ArrayBuffer>;
}

/** How a site is asked; both throw what a guarded fetch does. */
export interface SiteCalls {
  /** Gives the JSON of an answer. @throws {AppError} `upstream_error` for any other */
  json(url: string, init?: { method: "POST"; body: string }): Promise<unknown>;
  /** Gives a file; `undefined` where a picture cannot be had. */
  file(url: string): Promise<FetchedCard>;
  picture(url: string): Promise<Uint8Array<ArrayBuffer> | undefined>;
}

/** Names of the sites whose pages can be imported from, beside the card site's own, as messages say them. */
export const OTHER_SITES = "pygmalion.chat, jannyai.com, realm.risuai.net, aicharactercards.com";

/** RFC 9562, section 4 */
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i;

const encoder = new TextEncoder();

/**
 * Finds what an address at another site leads to. Whole host names count: one that only contains them is somebody else's.
 * What is asked is built from parsed parts.
 *
 * @returns What fetches the card; `undefined` for an address elsewhere, which is a link to a file then.
 * @throws {AppError} `invalid_request` for a page of such a site that shows no character.
 */
export function otherSiteCard(url: URL): ((calls: SiteCalls) => Promise<FetchedCard>) | undefined {
  const host = url.hostname.replace(/^www\./, "");
  const segments = url.pathname.split("/").filter((part) => part !== "");
  switch (host) {
    case "pygmalion.chat":
      return (calls) => pygmalionCard(calls, uuidIn(url));
    case "jannyai.com":
    case "janitorai.com":
      return (calls) => jannyCard(calls, uuidIn(url));
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

async function pygmalionCard(calls: SiteCalls, id: string): Promise<FetchedCard> {
  const host = "server.pygmalion.chat";
  const answer = await calls.json(`https://${host}/api/export/character/${id}/v2`);
  const card = isJsonObject(answer) ? answer.character : undefined;
  if (!isJsonObject(card)) throw misunderstood(host);
  const avatar = isJsonObject(card.data) ? card.data.avatar : undefined;
  const picture = typeof avatar === "string" && URL.canParse(avatar) ? await calls.picture(avatar) : undefined;
  return { bytes: encoder.encode(JSON.stringify(card)), contentType: "application/json", picture };
}

async function jannyCard(calls: SiteCalls, id: string): Promise<FetchedCard> {
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
  if (typeof file !== "string" || !URL.canParse(file)) throw misunderstood(host);
  return await calls.file(file);
}

function uuidIn(url: URL): string {
  const id = UUID.exec(url.pathname)?.[0] ?? UUID.exec(url.search)?.[0];
  if (id !== undefined) return id.toLowerCase();
  throw new AppError("invalid_request", `Cannot import from "${url.host}": the address names no character`);
}

function misunderstood(host: string): AppError {
  return new AppError("upstream_error", `Cannot understand "${host}": its answer is not of the known form`);
}
