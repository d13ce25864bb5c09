/**
 * The store of tool servers: an encrypted document with the owner's settings, and one with permissions and the sign-in.
 */
import type { PurposeSealer } from "../crypto/sealer.ts";
import { createUuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Log } from "../log.ts";
import type { Database } from "../storage/database/database.ts";
import { SealedProfiles } from "../storage/documents/sealed_profiles.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import type { ToolPermission } from "../tools/tool_registry.ts";
import type { OAuthClientInformationMixed, OAuthDiscoveryState, OAuthTokens } from "./sdk.ts";
import {
  isSameServer,
  parseToolServer,
  type ToolServer,
  type ToolServerContent,
  type ToolServerInput,
  toToolServer,
} from "./tool_server.ts";

/** Kind of the change events. */
export const TOOL_SERVER_KIND = "tool_server";

/** The dependencies of the store. */
export interface ToolServersDeps {
  db: Database;
  /** For the purpose "tools". */
  sealer: PurposeSealer;
  events: EventHub;
  log: Log;
  now?: () => number;
  /** Whether programs may run on this machine (`tools_allow_programs`). */
  allowsPrograms: boolean;
}

/** A permission, and the state of the tool for which it was given. */
export interface StoredPermission {
  permission: ToolPermission;
  /** Like in `Tool`. */
  fingerprint: string;
}

/** The result of a sign-in: tokens of the server at `url`. */
export interface StoredSignIn {
  url: string;
  /** Address to which the authorization server redirects the browser. A registration is only valid for this address. */
  redirectUrl: string;
  client?: OAuthClientInformationMixed;
  tokens?: OAuthTokens;
  discovery?: OAuthDiscoveryState;
}

/** Lists the secrets of a sign-in. */
export function listSignInSecrets(signIn: StoredSignIn | undefined): string[] {
  const { access_token: access, refresh_token: refresh } = signIn?.tokens ?? {};
  return [access, refresh, signIn?.client?.client_secret].filter((secret) => typeof secret === "string");
}

interface State {
  permissions: Record<string, StoredPermission>;
  signIn?: StoredSignIn;
}

/** How to store a server. */
export interface PutOptions {
  expectedVersion?: ExpectedVersion;
  /**
   * For imports of exported data: an enabled server is held until the owner enables it, so also stores programs that
   * aren't allowed to run.
   */
  isImport?: boolean;
  /** For imports: when the server was created. */
  createdAtMs?: number;
}

/** Opens the store. A server that can't be decrypted stays in the list, marked as unreadable. */
export async function openToolServers(deps: ToolServersDeps): Promise<ToolServers> {
  const [servers, states] = await Promise.all([
    SealedProfiles.open<ToolServerContent>({ ...deps, kind: TOOL_SERVER_KIND, what: "tool server" }),
    SealedProfiles.open<State>({
      ...deps,
      kind: "tool_server_state",
      what: "state of the tool server",
      isPublished: false,
    }),
  ]);
  return new ToolServers(servers, states, deps.allowsPrograms);
}

/** The servers. They're in memory, and a change is visible once it's saved. */
export class ToolServers {
  readonly #servers: SealedProfiles<ToolServerContent>;
  readonly #states: SealedProfiles<State>;
  readonly #allowsPrograms: boolean;

  /** Use openToolServers. */
  constructor(servers: SealedProfiles<ToolServerContent>, states: SealedProfiles<State>, allowsPrograms: boolean) {
    this.#servers = servers;
    this.#states = states;
    this.#allowsPrograms = allowsPrograms;
  }

  /** Lists all servers, oldest first, so that the order of their tools in a prompt is stable. */
  list(): ToolServer[] {
    return this.#servers.list().reverse().map(toToolServer);
  }

  /** @throws {AppError} `not_found` */
  get(id: string): ToolServer {
    return toToolServer(this.#servers.get(id));
  }

  /** Finds the settings of a server, including its secrets. */
  findContent(id: string): ToolServerContent | undefined {
    return this.#servers.find(id)?.content;
  }

  /** Like `findContent`. @throws {AppError} `not_found`; `conflict` if it's unreadable */
  getContent(id: string): ToolServerContent {
    return this.#servers.getContent(id);
  }

  /**
   * Creates or replaces a server. Permissions and the sign-in only stay valid for the same program or URL.
   *
   * @throws {AppError} `invalid_request`, `address_not_allowed`, `revision_mismatch`; `programs_not_allowed` for a
   *   program if the configuration forbids them
   */
  async put(
    id: string | undefined,
    input: ToolServerInput,
    { expectedVersion, isImport = false, createdAtMs }: PutOptions = {},
  ): Promise<{ server: ToolServer; isNew: boolean }> {
    const known = id ?? createUuidV7();
    let isOther = false;
    const { record, isNew } = await this.#servers.put(known, (stored) => {
      const content = parseToolServer(known, input, stored);
      if (content.transport === "stdio" && !isImport) this.assertProgramsAllowed();
      isOther = stored === undefined || !isSameServer(stored, content);
      return isImport && content.isEnabled ? { ...content, isHeld: true } : content;
    }, { expectedVersion, createdAtMs });
    // An ID that was deleted and created again also starts without permissions.
    if (isOther) await this.#removeState(known);
    return { server: toToolServer(record), isNew };
  }

  /** Deletes a server with its permissions and its sign-in. @throws {AppError} `not_found`, `revision_mismatch` */
  async remove(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    await this.#servers.remove(id, expectedVersion);
    await this.#removeState(id);
  }

  /** @throws {AppError} `programs_not_allowed` */
  assertProgramsAllowed(): void {
    if (this.#allowsPrograms) return;
    throw new AppError(
      "programs_not_allowed",
      "Can't run programs as tool servers: they're disabled. To allow them, start Parlor with tools_allow_programs = true",
    );
  }

  /** Finds the permission of a tool, if there is one. */
  findPermission(id: string, toolName: string): StoredPermission | undefined {
    const permissions = this.#states.find(id)?.content?.permissions ?? {};
    return Object.hasOwn(permissions, toolName) ? permissions[toolName] : undefined;
  }

  /** Stores the permission of a tool. "ask" is the default. */
  async setPermission(id: string, toolName: string, { permission, fingerprint }: StoredPermission): Promise<void> {
    await this.#changeState(id, (state) => {
      const { [toolName]: _, ...others } = state.permissions;
      const stored = { permission, fingerprint };
      return { ...state, permissions: permission === "ask" ? others : { ...others, [toolName]: stored } };
    });
  }

  /** Finds the sign-in of a server; `undefined` if it was made at another address. */
  findSignIn(id: string): StoredSignIn | undefined {
    const content = this.findContent(id);
    const signIn = this.#states.find(id)?.content?.signIn;
    return content?.transport === "http" && signIn?.url === content.url ? signIn : undefined;
  }

  /** Stores a sign-in; `undefined` removes it. */
  async setSignIn(id: string, signIn: StoredSignIn | undefined): Promise<void> {
    await this.#changeState(id, ({ permissions }) => ({ permissions, ...(signIn && { signIn }) }));
  }

  async #changeState(id: string, change: (state: State) => State): Promise<void> {
    this.#servers.get(id);
    await this.#states.put(id, (stored) => change(stored ?? { permissions: {} }));
  }

  async #removeState(id: string): Promise<void> {
    if (this.#states.find(id) !== undefined) await this.#states.remove(id);
  }
}
