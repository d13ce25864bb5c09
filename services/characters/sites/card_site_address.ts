/** URLs of the card site: pages that users paste, API requests, and images. */
import { AppError } from "../../errors.ts";

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

/** Hosts of the public site's pages; all the same site. */
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
    throw new AppError("invalid_request", `Can't import from "${url.host}": this page shows no character`);
  }
  const card = parseSiteCard(`${decoded(creator)}/${decoded(slug)}`);
  if (card === undefined) {
    throw new AppError("invalid_request", `Can't import from "${url.host}": the address names no character`);
  }
  return card;
}

function decoded(segment = ""): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return ""; // not a valid segment
  }
}
