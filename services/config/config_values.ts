/** How one configuration value is written and checked, whichever of flag, environment or file it came from. */
import ipaddr from "ipaddr.js";

/** What a value may be; `path` and `secret_path` are strings that name files. */
export type ValueType = "string" | "integer" | "boolean" | "list" | "path";

/** A value after parsing; `null` stands for "not set" where the default is none. */
export type ConfigValue = string | number | boolean | readonly string[] | null;

/** Parses the text of a flag or of an environment variable. Throws an `Error` whose message completes "bad value …: ". */
export function parseValueText(type: ValueType, text: string): ConfigValue {
  switch (type) {
    case "boolean":
      if (text === "true" || text === "1") return true;
      if (text === "false" || text === "0") return false;
      throw new Error("expected true or false");
    case "integer":
      if (!/^-?\d{1,15}$/.test(text)) throw new Error("expected a whole number");
      return Number(text);
    case "list":
      return text.split(",").map((item) => item.trim()).filter((item) => item !== "");
    case "string":
    case "path":
      return text === "" ? null : text;
  }
}

/** Checks the type of a value that config.toml gave. Throws as `parseValueText` does. */
export function parseTomlValue(type: ValueType, value: unknown): ConfigValue {
  switch (type) {
    case "boolean":
      if (typeof value === "boolean") return value;
      throw new Error("expected true or false");
    case "integer":
      if (typeof value === "bigint") return Number(value);
      if (typeof value === "number" && Number.isSafeInteger(value)) return value;
      throw new Error("expected a whole number");
    case "list":
      if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
      throw new Error('expected a list of strings such as ["a", "b"]');
    case "string":
    case "path":
      if (typeof value === "string") return value === "" ? null : value;
      throw new Error("expected a string");
  }
}

type Check = (value: ConfigValue) => void;

/** A check that a number lies within bounds, both included. */
export function between(low: number, high: number): Check {
  return (value) => {
    if (typeof value === "number" && (value < low || value > high)) {
      throw new Error(`expected a number from ${low} to ${high}`);
    }
  };
}

/** A check that a string is one of the words given. */
export function oneOf(...words: string[]): Check {
  return (value) => {
    if (typeof value === "string" && !words.includes(value)) {
      throw new Error(`expected ${words.map((word) => `"${word}"`).join(" or ")}`);
    }
  };
}

/** A check that a string is an http or https address without credentials. */
export function httpUrl(value: ConfigValue): void {
  if (typeof value !== "string") return;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new Error("expected an http:// or https:// address without credentials");
  }
}

/** A check that a string is the address of an HTTP proxy: `http://`, a host and a port, nothing more. */
export function proxyUrl(value: ConfigValue): void {
  if (typeof value !== "string") return;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || url.protocol !== "http:" || url.href !== `${url.origin}/`) {
    throw new Error("expected an address such as http://proxy.example.org:3128, without credentials and path");
  }
}

/** A check that each item is an IP address or a CIDR such as `10.0.0.0/8`. */
export function cidrs(value: ConfigValue): void {
  for (const item of toItems(value)) {
    if (!ipaddr.isValid(item) && !ipaddr.isValidCIDR(item)) {
      throw new Error(`"${item}" is neither an IP address nor a CIDR such as 10.0.0.0/8`);
    }
  }
}

/** A check that each item is a host name, an IP address, a CIDR or `*.suffix`, without scheme and port. */
export function hosts(value: ConfigValue): void {
  for (const item of toItems(value)) {
    const bare = item.replace(/^\*\./, "").replace(/^\[(.*)\]$/, "$1");
    const isName = /^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$/.test(
      bare,
    );
    if (!isName && !ipaddr.isValid(bare) && !ipaddr.isValidCIDR(bare)) {
      throw new Error(`"${item}" isn't a host name, IP address, CIDR or *.suffix (write it without scheme and port)`);
    }
  }
}

/** A check that each item is a host name or an IP address, with or without a port: `192.168.1.20:9000`, `[::1]:9000`. */
export function hostsWithPorts(value: ConfigValue): void {
  for (const item of toItems(value)) hosts([/^(?:\[.*\]|[^:]*)(?=:\d{1,5}$)/.exec(item)?.[0] ?? item]);
}

/** A check that each item is an origin: scheme, host and optional port, nothing more. */
export function origins(value: ConfigValue): void {
  for (const item of toItems(value)) {
    if (!URL.canParse(item) || new URL(item).origin !== item) {
      throw new Error(`"${item}" isn't an origin such as https://chat.example.org`);
    }
  }
}

/** A check that a value names a domain suffix without a leading dot. */
export function domainSuffix(value: ConfigValue): void {
  if (typeof value === "string" && !/^[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(value)) {
    throw new Error("expected a domain in lower case without a leading dot, such as ts.net");
  }
}

/** One label of a host name, as a tailnet gives them to its machines. @see RFC 1123, section 2.1 */
export const HOST_LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** A check that a value is one label of a host name. */
export function hostLabel(value: ConfigValue): void {
  if (typeof value === "string" && !HOST_LABEL.test(value)) {
    throw new Error("expected 1 to 63 lower-case letters, digits or hyphens, no hyphen at either end");
  }
}

function toItems(value: ConfigValue): readonly string[] {
  return Array.isArray(value) ? value : [];
}
