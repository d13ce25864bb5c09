/** Addresses of the card site: what people paste, what is asked, and which pictures are ours to fetch. */
import { AppError } from "../../errors.ts";

/** One character at the card site. */
export interface SiteCard {
  creator: string;
  slug: string;
}

/** Where a card site answers. */
export interface SiteHosts {
  /** Search and characters. */
  api: string;
  /** Pictures of its characters. */
  pictures: string;
  /** Pages for people. */
  pages: string;
}

/** Hosts of the public site's pages, all of them the same site. */
const PAGE_HOSTS = new Set([
  ...["chub.ai", "www.chub.ai", "venus.chub.ai", "characterhub.org", "www.characterhub.org"],
  ...["chub.chat", "www.chub.chat"],
]);
const API_HOSTS = new Set(["api.chub.ai", "gateway.chub.ai"]);

const SEGMENT = /^[^/\\?#%\s\p{Cc}]{1,128}$/u;

/** Gives the hosts of a configured site; a mirror serves everything itself. @param siteUrl `card_site_url` */
export function hostsOf(siteUrl: string): SiteHosts {
  const api = siteUrl.replace(/\/+$/, "");
  if (!API_HOSTS.has(new URL(siteUrl).hostname)) return { api, pictures: api, pages: api };
  return { api, pictures: "https://avatars.charhub.io", pages: "https://chub.ai" };
}

/** Gives a character by its `creator/slug`, or `undefined` for what is none. */
export function siteCardOf(fullPath: string): SiteCard | undefined {
  const parts = fullPath.split("/");
  const [creator, slug] = parts;
  const isPlain = (part: string | undefined) =>
    part !== undefined && SEGMENT.test(part) && part !== "." && part !== "..";
  return parts.length === 2 && isPlain(creator) && isPlain(slug) ? { creator: creator!, slug: slug! } : undefined;
}

/** Gives the path segments of a character, escaped once. */
export function pathOf({ creator, slug }: SiteCard): string {
  return `${encodeURIComponent(creator)}/${encodeURIComponent(slug)}`;
}

/**
 * Finds the character whose page an address shows.
 *
 * @returns `undefined` for an address elsewhere.
 * @throws {AppError} `invalid_request` for another page of the site.
 */
export function siteCardAt(url: URL, hosts: SiteHosts): SiteCard | undefined {
  if (!PAGE_HOSTS.has(url.hostname) && url.origin !== new URL(hosts.pages).origin) return undefined;
  const [kind, creator, slug] = url.pathname.split("/").filter((part) => part !== "");
  if (kind !== "characters") {
    // A mirror's own files are direct links.
    if (!PAGE_HOSTS.has(url.hostname)) return undefined;
    throw new AppError("invalid_request", `Cannot import from "${url.host}": this page shows no character`);
  }
  const card = siteCardOf(`${decoded(creator)}/${decoded(slug)}`);
  if (card === undefined) {
    throw new AppError("invalid_request", `Cannot import from "${url.host}": the address names no character`);
  }
  return card;
}

function decoded(segment = ""): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return ""; // no segment
  }
}
