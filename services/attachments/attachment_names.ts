/** Names of attachments, and how messages refer to them. */
import { isDeviceName } from "../storage/ids.ts";
import type { ImageType } from "./images/image_type.ts";

/** Names of attachments. */
const NAME = "[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}";

/** The form of a whole name. */
export const ATTACHMENT_NAME = new RegExp(`^${NAME}$`);

/** Tells whether an attachment may be stored under a name. */
export function isAttachmentName(name: string): boolean {
  return ATTACHMENT_NAME.test(name) && !isDeviceName(name);
}

const URL_PREFIX = "/api/attachments/";

const ENDINGS: Record<ImageType, string> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
  "image/gif": "gif",
};

/** Gives the address under which an attachment is fetched. */
export function attachmentUrl(name: string): string {
  return URL_PREFIX + name;
}

/** Gives the name in an address of ours, or `undefined` for any other address. */
export function nameInUrl(url: string): string | undefined {
  const name = url.startsWith(URL_PREFIX) ? url.slice(URL_PREFIX.length) : "";
  return ATTACHMENT_NAME.test(name) ? name : undefined;
}

/** Gives the file name of a picture. @param stem Without an ending. */
export function nameWithEnding(stem: string, type: ImageType): string {
  return `${stem}.${ENDINGS[type]}`;
}

/**
 * Finds every attachment that JSON text refers to: by address anywhere in it, and by name in fields called `attachments`.
 *
 * It may find more than is meant, as in a message that only talks about an address; such a picture is kept longer.
 */
export function namesIn(json: string): string[] {
  const names = new Set<string>();
  if (json.includes(URL_PREFIX)) {
    for (const [, name] of json.matchAll(URLS)) names.add(name!);
  }
  if (json.includes('"attachments":[')) {
    for (const [, list] of json.matchAll(LISTS)) {
      for (const [, name] of list!.matchAll(LISTED)) names.add(name!);
    }
  }
  return [...names];
}

const URLS = new RegExp(URL_PREFIX + `(${NAME})`, "g");
const LISTS = /"attachments":\[([^\]]*)\]/g;
const LISTED = new RegExp(`"(${NAME})"`, "g");
