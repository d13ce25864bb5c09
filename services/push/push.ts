/**
 * Tells devices that a reply is ready, or waits for the owner, while no page is open there: by Web Push, through the vendor of the browser, and by an
 * ntfy or Gotify server of the owner. No text of a chat leaves the server; the vendor can't read which chat it is.
 */
import { AppError, getErrorMessage } from "../errors.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import { getErrorFields } from "../http/upstream_error.ts";
import type { Log } from "../log.ts";
import { SealedSetting, type SealedSettingDeps } from "../storage/documents/sealed_document.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import { type NoticeKind, type NotifyServer, type NotifyServerInput, updateNotifyServer } from "./notify_server.ts";

/** A device as the API shows it. */
export interface PushDevice {
  id: string;
  /** What the owner calls it. */
  label: string;
  /** Host of the push service, which belongs to the vendor of the browser: `"fcm.googleapis.com"`. */
  vendor: string;
  /** ISO 8601, UTC. */
  createdAt: string;
}

/** A subscription as a browser gives it. @see https://www.w3.org/TR/push-api/#pushsubscription-interface */
export interface PushSubscriptionInput {
  endpoint: string;
  /** base64url: an uncompressed P-256 point, and 16 random bytes. */
  keys: { p256dh: string; auth: string };
  label: string;
}

interface StoredDevice extends PushSubscriptionInput {
  id: string;
  createdAt: string;
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
  /** Language of the owner's settings; `null` for the browser's. */
  getLanguage(): string | null;
}

/** A browser renews its subscriptions, so a few devices make few of them. */
const MAX_DEVICES = 50;
/** A page says that it is visible every 30 s. One that froze or lost its network must not keep the phone silent for long. */
const PRESENCE_MS = 75_000;
/** How long a push service keeps the message for a phone that is off. */
const TTL_SECONDS = 24 * 60 * 60;
const SEND_MS = 30_000;
/** Responses of push services are short; RFC 8030 needs only their status. */
const MAX_RESPONSE_BYTES = 64 * 1024;
/** Push services require a contact (RFC 8292, section 2.1). A private server has none that a vendor should know. */
const CONTACT = "mailto:parlor@example.org";
/** The subscription has ended (RFC 8030, section 7.3). */
const EXPIRED = [404, 410];

/** The subscribed devices and the owner's notification server. */
export class Push {
  readonly #deps: PushDeps;
  readonly #setting: SealedSetting<Content>;
  /** By device and page: until when a visible page counts. */
  readonly #visible = new Map<string, Map<string, number>>();
  readonly #sending = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  /** @param deps.sealer For the purpose "push". */
  constructor(deps: PushDeps) {
    this.#deps = deps;
    const defaults: Content = { vapid: null, devices: [], server: null };
    this.#setting = new SealedSetting(deps, { key: "push", label: "The notification settings", defaults });
  }

  /** Returns the public key that browsers subscribe with, base64url; makes the pair when it's first needed. */
  async getPublicKey(): Promise<string> {
    const { vapid } = this.#setting.load().content;
    if (vapid !== null) return vapid.publicKey;
    const made = await makeVapidKeys();
    const { content } = await this.#setting.change((before) => ({ ...before, vapid: before.vapid ?? made }));
    return content.vapid!.publicKey;
  }

  /** Lists the devices, newest first. */
  list(): PushDevice[] {
    return this.#setting.load().content.devices.map(toDevice);
  }

  /**
   * Subscribes a device, or replaces its subscription.
   *
   * @throws {AppError} `invalid_request`, `address_not_allowed` for an endpoint that isn't public, `conflict` for too many
   */
  async put(id: string, { endpoint, keys, label }: PushSubscriptionInput): Promise<PushDevice> {
    if (!endpoint.startsWith("https://")) {
      throw new AppError("invalid_request", "Can't use the subscription: its endpoint isn't an https address");
    }
    assertKeys(keys);
    (await this.#deps.openGuard()).check(endpoint);
    const createdAt = new Date(this.#deps.now()).toISOString();
    const device: StoredDevice = { id, endpoint, keys, label, createdAt };
    await this.#setting.change((before) => {
      const others = before.devices.filter((other) => other.id !== id && other.endpoint !== endpoint);
      if (others.length >= MAX_DEVICES) {
        throw new AppError("conflict", `There are ${MAX_DEVICES} devices with notifications; remove one`);
      }
      return { ...before, devices: [device, ...others] };
    });
    return toDevice(device);
  }

  /** Ends the subscription of a device. @throws {AppError} `not_found` */
  async remove(id: string): Promise<void> {
    await this.#setting.change((before) => {
      const devices = before.devices.filter((device) => device.id !== id);
      if (devices.length === before.devices.length) throw new AppError("not_found", `There is no device "${id}"`);
      return { ...before, devices };
    });
    this.#visible.delete(id);
  }

  /** Notes that a page of a device is visible, or no longer. @throws {AppError} `not_found` */
  notePresence(id: string, page: string, isVisible: boolean): void {
    if (!this.list().some((device) => device.id === id)) throw new AppError("not_found", `There is no device "${id}"`);
    const pages = this.#visible.get(id) ?? new Map<string, number>();
    for (const [other, untilMs] of pages) if (untilMs <= this.#deps.now()) pages.delete(other);
    pages.delete(page);
    if (isVisible) pages.set(page, this.#deps.now() + PRESENCE_MS);
    this.#visible.set(id, pages);
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

  /** Sends a test by the notification server. @throws {AppError} `not_found`, `upstream_error`, `upstream_timeout` */
  async testServer(signal: AbortSignal): Promise<void> {
    await this.#notifyServer("reply", signal);
  }

  /** Tells the devices where no page is visible that a reply is ready. Returns at once; a failure is logged. */
  replyCompleted({ conversationId }: { conversationId: string }): void {
    this.#notify("reply", conversationId);
  }

  /** As `replyCompleted`, for a reply that waits until the owner decides about a call of a tool. */
  notifyApproval({ conversationId }: { conversationId: string }): void {
    this.#notify("approval", conversationId);
  }

  async #notifyServer(kind: NoticeKind, signal: AbortSignal): Promise<void> {
    const { server } = this.getServer();
    if (server === null) throw new AppError("not_found", "No notification server is set");
    const { sendNotice } = await import("./notify_server.ts");
    await sendNotice(server, kind, signal);
  }

  #notify(kind: NoticeKind, conversationId: string): void {
    let content: Content;
    try {
      content = this.#setting.load().content;
    } catch (error) {
      return this.#deps.log("error", "Can't read the notification settings", getErrorFields(error)); // the reply itself is fine
    }
    const { devices, server } = content;
    for (const device of devices) {
      if (!this.#isVisible(device.id)) {
        this.#inBackground(this.#send(device, kind, conversationId), new URL(device.endpoint).host);
      }
    }
    const isSeen = devices.some(({ id }) => this.#isVisible(id));
    if (server !== null && !isSeen) {
      this.#inBackground(this.#notifyServer(kind, this.#closing.signal), new URL(server.url).host);
    }
  }

  /** Ends what is being sent. */
  async close(): Promise<void> {
    this.#closing.abort(new DOMException("Parlor is shutting down", "AbortError"));
    await Promise.all(this.#sending);
  }

  #isVisible(id: string): boolean {
    const nowMs = this.#deps.now();
    return [...this.#visible.get(id)?.values() ?? []].some((untilMs) => untilMs > nowMs);
  }

  #inBackground(work: Promise<void>, host: string): void {
    const guarded: Promise<void> = work.catch((error) => {
      if (!this.#closing.signal.aborted) {
        this.#deps.log("warn", "Can't send a notification", { host, ...getErrorFields(error) });
      }
    }).finally(() => this.#sending.delete(guarded));
    this.#sending.add(guarded);
  }

  async #send({ id, endpoint, keys }: StoredDevice, kind: NoticeKind, conversationId: string): Promise<void> {
    const { buildPushPayload } = await import("@block65/webcrypto-web-push");
    await this.getPublicKey();
    const vapid = this.#setting.load().content.vapid!;
    const message = {
      data: { kind, conversation_id: conversationId, language: this.#deps.getLanguage() },
      options: { ttl: TTL_SECONDS, urgency: "high" as const },
    };
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
    if (EXPIRED.includes(response.status)) {
      await this.remove(id);
      this.#deps.log("info", "Removed a device whose subscription has ended", { host: new URL(endpoint).host });
    } else if (!response.ok) {
      throw new AppError("upstream_error", `The push service responded with status ${response.status}`);
    } else {
      this.#deps.log("debug", "Sent a notification", { host: new URL(endpoint).host });
    }
  }
}

function toDevice({ id, endpoint, label, createdAt }: StoredDevice): PushDevice {
  return { id, label, vendor: new URL(endpoint).host, createdAt };
}

/** @throws {AppError} `invalid_request` */
function assertKeys({ p256dh, auth }: PushSubscriptionInput["keys"]): void {
  try {
    const point = Uint8Array.fromBase64(p256dh, { alphabet: "base64url" });
    const secret = Uint8Array.fromBase64(auth, { alphabet: "base64url" });
    if (point.length === 65 && point[0] === 4 && secret.length === 16) return;
  } catch (error) {
    throw new AppError(
      "invalid_request",
      `Can't use the subscription: its keys aren't base64url: ${getErrorMessage(error)}`,
    );
  }
  throw new AppError("invalid_request", "Can't use the subscription: its keys have the wrong length");
}

/** Makes a P-256 key pair for signing. @see RFC 8292, section 2 */
export async function makeVapidKeys(): Promise<VapidKeys> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  const { publicKey, privateKey } = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const raw = new Uint8Array(await crypto.subtle.exportKey("raw", publicKey));
  const { d } = await crypto.subtle.exportKey("jwk", privateKey);
  return { publicKey: raw.toBase64({ alphabet: "base64url", omitPadding: true }), privateKey: d! };
}
