/**
 * Tells devices that a reply is ready, or waits for the owner, while no page is open there and none is being used
 * elsewhere: by Web Push, through the vendor of the browser, and by an ntfy or Gotify server of the owner. No text of a
 * chat leaves the server; the vendor can't read which chat it is.
 */
import type { PushMessage } from "@block65/webcrypto-web-push";
import { createECDH } from "node:crypto";
import { delay } from "../async/delay.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import type { OwnListeners } from "../http/own_listeners.ts";
import { parseRetryAfter } from "../http/read_body.ts";
import { getErrorFields, UpstreamError } from "../http/upstream_error.ts";
import type { Log } from "../log.ts";
import { SealedSetting, type SealedSettingDeps } from "../storage/documents/sealed_document.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import { type NoticeKind, type NotifyServer, type NotifyServerInput, updateNotifyServer } from "./notify_server.ts";

/** A device in the API's format. */
export interface PushDevice {
  id: string;
  /** The owner's name for it. */
  label: string;
  /** Host of the push service, which belongs to the vendor of the browser: `"fcm.googleapis.com"`. */
  vendor: string;
  /** ISO 8601, UTC. */
  createdAt: string;
}

/** A subscription from a browser. @see https://www.w3.org/TR/push-api/#pushsubscription-interface */
export interface PushSubscriptionInput {
  endpoint: string;
  /** base64url: an uncompressed P-256 point, and 16 random bytes. */
  keys: { p256dh: string; auth: string };
  label: string;
}

/** What a device signed in with when it subscribed: a passkey or a token; neither where that isn't needed. */
export interface DeviceAccess {
  credentialId?: string;
  tokenId?: string;
}

/** What a page says of itself. */
export interface Presence {
  /** A random id of the page. */
  page: string;
  isVisible: boolean;
  /** Someone typed, clicked or scrolled in the last half minute. */
  isUsed: boolean;
}

interface StoredDevice extends PushSubscriptionInput {
  id: string;
  createdAt: string;
  /** Absent in devices of older versions. */
  access?: DeviceAccess;
}

/** The key pair that identifies this server to push services, base64url. @see RFC 8292 */
export interface VapidKeys {
  publicKey: string;
  privateKey: string;
}

interface Content {
  vapid: VapidKeys | null;
  devices: StoredDevice[];
  server: NotifyServer | null;
}

/** Dependencies of `Push`. */
export interface PushDeps extends SealedSettingDeps {
  log: Log;
  now(): number;
  /** Opens the guard: addresses of subscriptions come from browsers. */
  openGuard(): Promise<Guard>;
  ownListeners?: OwnListeners;
  /** Returns the language in the owner's settings; `null` for the browser's. */
  getLanguage(): string | null;
  /** Returns whether a passkey or token hasn't been revoked. */
  hasAccess(access: DeviceAccess): Promise<boolean>;
  /** Waits before further tries of what failed; default 10 s, 1 min and 5 min. */
  retryDelaysMs?: readonly number[];
}

/** Maximum number of devices. A browser renews its subscription, so a few devices create few. */
const MAX_DEVICES = 50;
/** A page says that it is visible, or used, every 30 s. One that froze or lost its network must not keep the phone silent for long. */
const PRESENCE_MS = 75_000;
/** Maximum number of pages that count as open on one device; the oldest reports are dropped. */
const MAX_PAGES = 100;
/** Push services limit their senders and fail now and then. */
const RETRY_DELAYS_MS = [10_000, 60_000, 300_000];
/** Asked to wait longer, it's given up: the notification would be late. */
const MAX_WAIT_MS = 900_000;
/** How long a push service stores the message for a phone that is off. */
const TTL_SECONDS = 24 * 60 * 60;
const SEND_MS = 30_000;
/** Maximum size of a response. Responses of push services are short, and RFC 8030 only uses the status. */
const MAX_RESPONSE_BYTES = 64 * 1024;
/**
 * Push services require a contact (RFC 8292, section 2.1). A private server has no contact that a vendor should know.
 */
const CONTACT = "mailto:parlor@example.org";
/** Statuses of an ended subscription (RFC 8030, section 7.3). */
const EXPIRED = [404, 410];

/** The subscribed devices and the owner's notification server. */
export class Push {
  readonly #deps: PushDeps;
  readonly #setting: SealedSetting<Content>;
  /** By device and page: the time until which a page counts as visible. */
  readonly #visible = new Map<string, Map<string, number>>();
  /** By page, of any device: until when it counts as used. */
  readonly #used = new Map<string, number>();
  readonly #sending = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  /** @param deps.sealer For the purpose "push". */
  constructor(deps: PushDeps) {
    this.#deps = deps;
    const defaults: Content = { vapid: null, devices: [], server: null };
    this.#setting = new SealedSetting(deps, { key: "push", label: "The notification settings", defaults });
  }

  /** Returns the public key for subscriptions in base64url. Creates the key pair on first use. */
  async getPublicKey(): Promise<string> {
    const { vapid } = this.#setting.load().content;
    if (vapid !== null) return vapid.publicKey;
    const keys = await makeVapidKeys();
    const { content } = await this.#setting.change((before) => ({ ...before, vapid: before.vapid ?? keys }));
    return content.vapid!.publicKey;
  }

  /** Lists the devices, newest first. Removes those whose access was revoked. */
  async list(): Promise<PushDevice[]> {
    for (const device of this.#setting.load().content.devices) await this.#dropRevoked(device);
    return this.#setting.load().content.devices.map(toDevice);
  }

  /**
   * Subscribes a device, or replaces its subscription.
   *
   * @param access What ends the subscription when it's revoked.
   * @throws {AppError} `invalid_request`, `address_not_allowed` for an endpoint that isn't public, `conflict` for too many
   */
  async put(
    id: string,
    { endpoint, keys, label }: PushSubscriptionInput,
    access: DeviceAccess = {},
  ): Promise<PushDevice> {
    if (!endpoint.startsWith("https://")) {
      throw new AppError("invalid_request", "Can't use the subscription: its endpoint isn't an https address");
    }
    assertKeys(keys);
    (await this.#deps.openGuard()).check(endpoint);
    const createdAt = new Date(this.#deps.now()).toISOString();
    const device: StoredDevice = { id, endpoint, keys, label, createdAt, access };
    await this.#setting.change((before) => {
      const others = before.devices.filter((other) => other.id !== id && other.endpoint !== endpoint);
      if (others.length >= MAX_DEVICES) {
        throw new AppError("conflict", `There are already ${MAX_DEVICES} devices with notifications. Remove one first`);
      }
      return { ...before, devices: [device, ...others] };
    });
    return toDevice(device);
  }

  /** Ends the subscription of a device. @throws {AppError} `not_found` */
  async remove(id: string): Promise<void> {
    await this.#setting.change((before) => {
      const devices = before.devices.filter((device) => device.id !== id);
      if (devices.length === before.devices.length) throw new AppError("not_found", `Device "${id}" not found`);
      return { ...before, devices };
    });
    this.#visible.delete(id);
  }

  /** Records whether a page of a device is visible and in use. @throws {AppError} `not_found` */
  recordPresence(id: string, presence: Presence): void {
    if (!this.#setting.load().content.devices.some((device) => device.id === id)) {
      throw new AppError("not_found", `Device "${id}" not found`);
    }
    const pages = this.#visible.get(id) ?? new Map<string, number>();
    this.#visible.set(id, this.#note(pages, presence.page, presence.isVisible));
    this.#note(this.#used, presence.page, presence.isVisible && presence.isUsed);
  }

  /**
   * Records whether a page of a device without notifications is in use.
   *
   * @returns True while notifications are on. Otherwise, the page can stop reporting.
   */
  recordPagePresence({ page, isVisible, isUsed }: Presence): boolean {
    this.#note(this.#used, page, isVisible && isUsed);
    const { devices, server } = this.#setting.load().content;
    return devices.length > 0 || (server !== null && !server.isHeld);
  }

  /** Returns the owner's notification server and the version of the settings. */
  getServer(): { server: NotifyServer | null; version: number } {
    const { version, content } = this.#setting.load();
    return { server: content.server, version };
  }

  /** Sets the notification server; `null` removes it. @throws {AppError} `invalid_request`, `address_not_allowed`, `revision_mismatch` */
  async putServer(input: NotifyServerInput | null, expectedVersion?: ExpectedVersion): Promise<void> {
    await this.#setting.change(
      (before) => ({ ...before, server: input && updateNotifyServer(input, before.server) }),
      expectedVersion,
    );
  }

  /**
   * Sets the notification server to that of an export. It isn't used until the owner saves it.
   *
   * @throws {AppError} `invalid_request`, `address_not_allowed`
   */
  async importServer(input: NotifyServerInput): Promise<void> {
    const server: NotifyServer = { ...updateNotifyServer(input, null), isHeld: true };
    await this.#setting.change((before) => ({ ...before, server }));
  }

  /**
   * Sends a test through the notification server.
   *
   * @throws {AppError} `not_found`, `upstream_error`, `upstream_timeout`
   */
  async testServer(signal: AbortSignal): Promise<void> {
    await this.#notifyServer("reply", signal);
  }

  /**
   * Tells the devices where no page is visible that a reply is ready, unless someone uses a page on another device now.
   * Returns at once; a failure is logged.
   */
  replyCompleted({ conversationId }: { conversationId: string }): void {
    this.#notify("reply", conversationId);
  }

  /** Like `replyCompleted`, for a reply that waits for the owner's decision about a tool call. */
  notifyApproval({ conversationId }: { conversationId: string }): void {
    this.#notify("approval", conversationId);
  }

  /** Like `replyCompleted`, for stored data that was found to be damaged or missing. */
  notifyDamage(): void {
    this.#notify("damage");
  }

  async #notifyServer(kind: NoticeKind, signal: AbortSignal): Promise<void> {
    const { server } = this.getServer();
    if (server === null) throw new AppError("not_found", "No notification server is configured");
    const { sendNotice } = await import("./notify_server.ts");
    await sendNotice(server, kind, signal, this.#deps.ownListeners);
  }

  #notify(kind: NoticeKind, conversationId?: string): void {
    let content: Content;
    try {
      content = this.#setting.load().content;
    } catch (error) {
      return this.#deps.log("error", "Can't read the notification settings", getErrorFields(error)); // The reply itself isn't affected.
    }
    if (this.#isUsed()) return;
    const { devices, server } = content;
    for (const device of devices) {
      const isSeen = () => this.#isUsed() || this.#isVisible(device.id);
      if (isSeen()) continue;
      this.#inBackground(() => this.#send(device, kind, conversationId), isSeen, new URL(device.endpoint).host);
    }
    if (server !== null && !server.isHeld) {
      const send = () => this.#notifyServer(kind, this.#closing.signal);
      this.#inBackground(send, () => this.#isUsed(), new URL(server.url).host);
    }
  }

  /** Cancels notifications that are being sent. */
  async close(): Promise<void> {
    this.#closing.abort(new DOMException("Parlor is shutting down", "AbortError"));
    await Promise.all(this.#sending);
  }

  #note(pages: Map<string, number>, page: string, isPresent: boolean): Map<string, number> {
    for (const [other, untilMs] of pages) if (untilMs <= this.#deps.now()) pages.delete(other);
    pages.delete(page);
    if (isPresent) pages.set(page, this.#deps.now() + PRESENCE_MS);
    const [oldest] = pages.keys();
    if (pages.size > MAX_PAGES) pages.delete(oldest!);
    return pages;
  }

  #isVisible(id: string): boolean {
    return this.#isAny(this.#visible.get(id) ?? new Map());
  }

  #isUsed(): boolean {
    return this.#isAny(this.#used);
  }

  #isAny(pages: ReadonlyMap<string, number>): boolean {
    const nowMs = this.#deps.now();
    return [...pages.values()].some((untilMs) => untilMs > nowMs);
  }

  /** @param isSeen Ends further tries: someone looked in the meantime. */
  #inBackground(send: () => Promise<void>, isSeen: () => boolean, host: string): void {
    const guarded: Promise<void> = this.#tryAgain(send, isSeen, host).catch((error) => {
      if (!this.#closing.signal.aborted) {
        this.#deps.log("warn", "Can't send a notification", { host, ...getErrorFields(error) });
      }
    }).finally(() => this.#sending.delete(guarded));
    this.#sending.add(guarded);
  }

  async #tryAgain(send: () => Promise<void>, isSeen: () => boolean, host: string): Promise<void> {
    for (const delayMs of this.#deps.retryDelaysMs ?? RETRY_DELAYS_MS) {
      try {
        return await send();
      } catch (error) {
        const askedMs = error instanceof AppError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
        if (!isPassing(error) || askedMs > MAX_WAIT_MS) throw error;
        this.#deps.log("debug", "Trying to send a notification again later", { host, ...getErrorFields(error) });
        await delay(Math.max(delayMs, askedMs), this.#closing.signal);
        if (isSeen()) return;
      }
    }
    await send();
  }

  /** @returns Whether it was removed. */
  async #dropRevoked({ id, access = {}, endpoint }: StoredDevice): Promise<boolean> {
    if (await this.#deps.hasAccess(access)) return false;
    await this.#drop(id, "Removed a device whose access was revoked", endpoint);
    return true;
  }

  async #drop(id: string, message: string, endpoint: string): Promise<void> {
    // The device may have subscribed again, or been removed, since.
    await this.#setting.change((before) => ({
      ...before,
      devices: before.devices.filter((device) => device.id !== id || device.endpoint !== endpoint),
    }));
    this.#deps.log("info", message, { host: new URL(endpoint).host });
  }

  async #send(device: StoredDevice, kind: NoticeKind, conversationId: string | undefined): Promise<void> {
    if (await this.#dropRevoked(device)) return;
    const { id, endpoint, keys } = device;
    const { buildPushPayload } = await import("@block65/webcrypto-web-push");
    await this.getPublicKey();
    const vapid = this.#setting.load().content.vapid!;
    const message = {
      data: {
        kind,
        ...(conversationId !== undefined && { conversation_id: conversationId }),
        language: this.#deps.getLanguage(),
      },
      options: { ttl: TTL_SECONDS, urgency: "high" as const },
    } satisfies PushMessage;
    const { headers, body } = await buildPushPayload(message, { endpoint, expirationTime: null, keys }, {
      subject: CONTACT,
      ...vapid,
    });
    const { "content-length": _, ...sent } = headers;
    const guard = await this.#deps.openGuard();
    const response = await guard.fetch(endpoint, {
      method: "POST",
      headers: sent,
      body,
      redirect: "manual",
      maxBytes: MAX_RESPONSE_BYTES,
      timeoutMs: SEND_MS,
      signal: this.#closing.signal,
    });
    await response.body?.cancel();
    const { status, headers: answer } = response;
    if (EXPIRED.includes(status)) {
      await this.#drop(id, "Removed a device whose subscription has ended", endpoint);
    } else if (!response.ok) {
      throw new UpstreamError("failed", `The push service responded with status ${status}`, {
        status,
        retryAfterSeconds: parseRetryAfter(answer, this.#deps.now()),
      });
    } else {
      this.#deps.log("debug", "Sent a notification", { host: new URL(endpoint).host });
    }
  }
}

/** Returns whether a later try may succeed: there was no response, or one of 429 or 5xx. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof AppError) || error.code !== "upstream_error" && error.code !== "upstream_timeout") {
    return false;
  }
  const status = error instanceof UpstreamError ? error.status : undefined;
  return status === undefined || status === 429 || status >= 500;
}

function toDevice({ id, endpoint, label, createdAt }: StoredDevice): PushDevice {
  return { id, label, vendor: new URL(endpoint).host, createdAt };
}

/** @throws {AppError} `invalid_request` */
function assertKeys({ p256dh, auth }: PushSubscriptionInput["keys"]): void {
  const refuse = (why: string) => new AppError("invalid_request", `Can't use the subscription: its keys ${why}`);
  let point: Uint8Array;
  let secret: Uint8Array;
  try {
    point = Uint8Array.fromBase64(p256dh, { alphabet: "base64url" });
    secret = Uint8Array.fromBase64(auth, { alphabet: "base64url" });
  } catch (error) {
    throw refuse(`aren't base64url: ${getErrorMessage(error)}`);
  }
  if (point.length !== 65 || point[0] !== 4 || secret.length !== 16) throw refuse("have the wrong length");
  // Otherwise, each notification would fail.
  const ecdh = createECDH("prime256v1");
  ecdh.generateKeys();
  try {
    ecdh.computeSecret(point);
  } catch {
    throw refuse("have a point that isn't on the curve P-256");
  }
}

/** Creates a P-256 key pair for signing. @see RFC 8292, section 2 */
export async function makeVapidKeys(): Promise<VapidKeys> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  const { publicKey, privateKey } = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const raw = new Uint8Array(await crypto.subtle.exportKey("raw", publicKey));
  const { d } = await crypto.subtle.exportKey("jwk", privateKey);
  return { publicKey: raw.toBase64({ alphabet: "base64url", omitPadding: true }), privateKey: d! };
}
