/** IP addresses in their usual spelling, and networks of them. What may be done with which address is decided elsewhere. */

/** An address. */
export interface IpAddress {
  readonly kind: "ipv4" | "ipv6";
  /** 4 or 16, in network order. */
  readonly bytes: readonly number[];
}

/** A network and the number of its leading bits that count. */
export type Cidr = readonly [IpAddress, number];

const V4 = /^(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})$/;
const V6_GROUP = /^[0-9a-f]{1,4}$/i;
/** RFC 4291, section 2.5.5.2: an IPv4 address as IPv6. */
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/**
 * Parses four decimal parts without leading zeros, or IPv6 without brackets and zone, whose last 32 bits may be written
 * as IPv4.
 *
 * @returns `undefined` for anything else: `127.1`, `0x7f.1`, `0177.0.0.1` and `2130706433` are no addresses here.
 * @see RFC 4291, section 2.2
 */
export function parseIp(text: string): IpAddress | undefined {
  const bytes = text.includes(":") ? parseV6(text) : parseV4(text);
  return bytes && { kind: bytes.length === 4 ? "ipv4" : "ipv6", bytes };
}

/** Gives the one spelling of an address: lower case, the longest run of zeros left out. @see RFC 5952, section 4 */
export function ipText({ kind, bytes }: IpAddress): string {
  if (kind === "ipv4") return bytes.join(".");
  const groups = Array.from({ length: 8 }, (_, at) => (bytes[2 * at]! << 8) | bytes[2 * at + 1]!);
  let [begin, length] = [0, 0];
  for (let at = 0; at < 8; at++) {
    let run = 0;
    while (groups[at + run] === 0) run++;
    if (run > length) [begin, length] = [at, run];
    at += run;
  }
  const text = (part: number[]) => part.map((group) => group.toString(16)).join(":");
  if (length < 2) return text(groups);
  return `${text(groups.slice(0, begin))}::${text(groups.slice(begin + length))}`;
}

/** Gives the IPv4 address that an IPv6 one stands for (`::ffff:10.0.0.1`), any other as it is. */
export function unmapped(address: IpAddress): IpAddress {
  const isMapped = address.kind === "ipv6" && MAPPED.every((byte, at) => byte === address.bytes[at]);
  return isMapped ? { kind: "ipv4", bytes: address.bytes.slice(12) } : address;
}

/**
 * Parses a network such as `"10.0.0.0/8"` or `"fd00::/8"`; bits behind the prefix do not matter.
 *
 * @throws {Error} when the text is none; whoever reads the configuration names the key.
 */
export function parseCidr(text: string): Cidr {
  const [, base = "", bits = ""] = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const address = parseIp(base);
  if (address === undefined || Number(bits) > 8 * address.bytes.length) throw new Error(`"${text}" is no CIDR`);
  return [address, Number(bits)];
}

/** Tells whether a text is a network. */
export function isCidr(text: string): boolean {
  try {
    parseCidr(text);
    return true;
  } catch {
    return false;
  }
}

/** Tells whether an address lies in a network; one of the other kind never does. */
export function isInNetwork(address: IpAddress, [network, bits]: Cidr): boolean {
  if (address.kind !== network.kind) return false;
  const wholeBytes = bits >> 3;
  for (let at = 0; at < wholeBytes; at++) if (address.bytes[at] !== network.bytes[at]) return false;
  const rest = bits & 7;
  return rest === 0 || ((address.bytes[wholeBytes]! ^ network.bytes[wholeBytes]!) >> (8 - rest)) === 0;
}

function parseV4(text: string): number[] | undefined {
  const bytes = V4.exec(text)?.slice(1).map(Number);
  return bytes?.every((byte) => byte <= 255) ? bytes : undefined;
}

function parseV6(text: string): number[] | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head, tail] = halves.map((half, at) => half === "" ? [] : bytesOfGroups(half, at === halves.length - 1));
  if (head === undefined || (halves.length === 2 && tail === undefined)) return undefined;
  if (halves.length === 1) return head.length === 16 ? head : undefined;
  const missing = 16 - head.length - tail!.length;
  // "::" stands for one group of zeros at least (RFC 5952, section 4.2.2, calls one unusual, not wrong).
  return missing >= 2 ? [...head, ...Array<number>(missing).fill(0), ...tail!] : undefined;
}

function bytesOfGroups(text: string, mayEndInV4: boolean): number[] | undefined {
  const groups = text.split(":");
  const bytes: number[] = [];
  for (const [at, group] of groups.entries()) {
    if (V6_GROUP.test(group)) {
      const value = parseInt(group, 16);
      bytes.push(value >> 8, value & 0xff);
      continue;
    }
    const v4 = mayEndInV4 && at === groups.length - 1 ? parseV4(group) : undefined;
    if (v4 === undefined) return undefined;
    bytes.push(...v4);
  }
  return bytes;
}
