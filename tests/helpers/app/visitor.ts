/** A visitor with a browser: the host it requests, its client address, its cookies, and an authenticator. */
import { Authenticator, type Faults } from "../fakes/authenticator.ts";
import { fetchAs } from "../network/fetch_as.ts";
import type { RawAnswer } from "../network/raw_http.ts";
import { openTestApp, type TestApp, type TestAppOptions } from "./test_app.ts";

/** Options of a visitor. */
export interface VisitorPlace {
  /** Host header; `localhost:PORT` by default. */
  host?: string;
  /** Client address that an HTTPS proxy forwards; without it, the request comes directly from this machine. */
  address?: string;
  authenticator?: Authenticator;
  headers?: Record<string, string>;
}

/** Opens a server behind a proxy on this machine that forwards client addresses. The loopback bypass is off. */
export function openGatedApp(options: TestAppOptions = {}): Promise<TestApp> {
  return openTestApp({
    ...options,
    config: {
      trustedProxies: ["127.0.0.1"],
      allowedHosts: ["desk.example", "phone.example", "desk.fox-owl.ts.net", "phone.fox-owl.ts.net"],
      loopbackAuthBypass: false,
      ...options.config,
    },
  });
}

/** The body of a response. */
export interface Said {
  status: number;
  headers: Headers;
  // deno-lint-ignore no-explicit-any
  json: any;
  /** The error's code. */
  code: string | undefined;
}

/** One browser. */
export class Visitor {
  readonly authenticator: Authenticator;
  readonly cookies = new Map<string, string>();
  readonly origin: string;
  readonly #app: TestApp;
  readonly #place: VisitorPlace;

  constructor(app: TestApp, place: VisitorPlace = {}) {
    this.#app = app;
    this.#place = place;
    this.authenticator = place.authenticator ?? new Authenticator();
    this.origin = place.address === undefined ? `http://${this.#host}` : `https://${place.host}`;
  }

  get #host(): string {
    return this.#place.host ?? `localhost:${this.#app.port}`;
  }

  /** Sends a request with its cookies, and stores the cookies of the response. */
  async ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Said> {
    const { host, address } = this.#place;
    const sent: Record<string, string> = { "User-Agent": "Visitor", ...this.#place.headers, ...headers };
    if (address !== undefined) {
      Object.assign(sent, {
        "X-Forwarded-For": address,
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": host,
        ...headers,
      });
    }
    if (body !== undefined) sent["Content-Type"] ??= "application/json";
    if (this.cookies.size > 0) sent.Cookie ??= [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetchAs(this.#app, {
      method,
      path,
      host: this.#host,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    this.#keepCookies(answer);
    const json = answer.body === "" ? undefined : JSON.parse(answer.body);
    return { status: answer.status, headers: answer.headers, json, code: json?.error?.code };
  }

  get(path: string, headers?: Record<string, string>): Promise<Said> {
    return this.ask("GET", path, undefined, headers);
  }

  post(path: string, body?: unknown): Promise<Said> {
    return this.ask("POST", path, body);
  }

  /** Requests a resource that requires access. */
  async isIn(): Promise<boolean> {
    return (await this.get("/api/settings")).status === 200;
  }

  /** Enrolls a passkey. Returns the response of the failed step, or of the last one. */
  async enrol(begin: { code?: string; name?: string } = {}, faults: Faults & { origin?: string } = {}): Promise<Said> {
    const begun = await this.post("/api/auth/register/begin", begin);
    if (begun.status !== 200) return begun;
    const answer = this.authenticator.create(begun.json, faults.origin ?? this.origin, faults);
    return await this.post("/api/auth/register/finish", answer);
  }

  /** Signs in. Returns the response of the last step. */
  async signIn(faults: Faults & { origin?: string } = {}): Promise<Said> {
    const begun = await this.post("/api/auth/login/begin", {});
    if (begun.status !== 200) return begun;
    return await this.post(
      "/api/auth/login/finish",
      this.authenticator.get(begun.json, faults.origin ?? this.origin, faults),
    );
  }

  #keepCookies(answer: RawAnswer): void {
    for (const line of answer.headers.getSetCookie()) {
      const [pair = "", ...attributes] = line.split(";").map((part) => part.trim());
      const name = pair.slice(0, pair.indexOf("="));
      if (attributes.includes("Max-Age=0")) this.cookies.delete(name);
      else this.cookies.set(name, pair.slice(name.length + 1));
    }
  }
}
