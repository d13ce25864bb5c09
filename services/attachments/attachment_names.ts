/** Names of attachments, and references to them in messages. */
import { isDeviceName } from "../storage/ids.ts";
import type { ImageType } from "./images/image_type.ts";

/** Characters of a name. */
const NAME = "[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}";

/** Matches a whole name. */
export const ATTACHMENT_NAME = new RegExp(`^${NAME}$`);

/** Reports whether an attachment may be stored under a name. */
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

/** Returns the URL path of an attachment. */
export function attachmentUrl(name: string): string {
  return URL_PREFIX + name;
}

/** Returns the name in the URL path of an attachment; `undefined` for other URLs. */
export function parseAttachmentUrl(url: string): string | undefined {
  const name = url.startsWith(URL_PREFIX) ? url.slice(URL_PREFIX.length) : "";
  return ATTACHMENT_NAME.test(name) ? name : undefined;
}

/** Returns the file name of an image. @param stem Without extension. */
export function toImageFileName(stem: string, type: ImageType): string {
  return `${stem}.${ENDINGS[type]}`;
}

/** Matches the URL path of an attachment. */
export const ATTACHMENT_URL = new RegExp(`^${URL_PREFIX}${NAME}$`);

/**
 * Finds all attachments that JSON text refers to: URLs anywhere, and names in `attachments` fields.
 *
 * May find too many, for example in a message that only mentions a URL. Those images are kept longer than needed.
 */
export function findAttachmentNames(json: string): string[] {
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
