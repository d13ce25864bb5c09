/** The settings of the built-in web tools: one sealed document. */
import { AppError } from "../../errors.ts";
import { normalizeBaseUrl } from "../../http/base_url.ts";
import { SealedSetting, type SealedSettingDeps } from "../../storage/documents/sealed_json.ts";
import type { ExpectedVersion } from "../../storage/preconditions.ts";
import type { ToolPermission } from "../tool_registry.ts";

/** The settings as they are in effect. */
export interface WebConfig {
  /** Address of the SearXNG server, without a trailing slash. Undefined if there is none. */
  searchUrl?: string;
  /** `web_search` is offered to models. */
  canSearch: boolean;
  /** `read_page` is offered to models. */
  canReadPages: boolean;
  /** Increases with every write; 0 before the first one. */
  version: number;
}

/** Changes to the settings. Undefined fields keep their value. */
export interface WebConfigInput {
  /** `null` or an empty text removes the address. */
  searchUrl?: string | null;
  search?: boolean;
  readPage?: boolean;
}

/** A permission and the state of the tool that it holds for. */
interface StoredPermission {
  permission: ToolPermission;
  fingerprint: string;
}

interface Content {
  searchUrl: string;
  /** Undefined until the owner decides: then both tools follow the address. */
  search?: boolean;
  readPage?: boolean;
  permissions: Record<string, StoredPermission>;
}

const DEFAULTS: Content = { searchUrl: "", permissions: {} };

/** The settings of the web tools. */
export class WebSettings {
  readonly #setting: SealedSetting<Content>;

  /** @param deps.sealer For the purpose "web tools". */
  constructor(deps: SealedSettingDeps) {
    this.#setting = new SealedSetting(deps, { key: "web_tools", label: "The web settings", defaults: DEFAULTS });
  }

  /** @throws {AppError} `internal` if the stored settings can't be decrypted */
  get(): WebConfig {
    const { version, content: { searchUrl, search, readPage } } = this.#setting.load();
    const hasAddress = searchUrl !== "";
    return {
      ...(hasAddress && { searchUrl }),
      canSearch: hasAddress && search !== false,
      canReadPages: readPage ?? hasAddress,
      version,
    };
  }

  /**
   * Changes the settings.
   *
   * @param expectedVersion The version the stored settings must have.
   * @throws {AppError} `invalid_request`, `address_not_allowed`, `revision_mismatch`
   */
  async put(input: WebConfigInput, expectedVersion?: ExpectedVersion): Promise<WebConfig> {
    const { searchUrl, search, readPage } = input;
    await this.#setting.change((before) => ({
      ...before,
      ...(searchUrl !== undefined && { searchUrl: normalizeSearchUrl(searchUrl ?? "") }),
      ...(search !== undefined && { search }),
      ...(readPage !== undefined && { readPage }),
    }), expectedVersion);
    return this.get();
  }

  /** Finds the permission of a tool; "ask" if none is stored for the tool as it is now. */
  findPermission(name: string, fingerprint: string): ToolPermission {
    const stored = this.#setting.load().content.permissions[name];
    return stored !== undefined && stored.fingerprint === fingerprint ? stored.permission : "ask";
  }

  /** Stores the permission of a tool. */
  async setPermission(name: string, stored: StoredPermission): Promise<void> {
    await this.#setting.change((before) => ({
      ...before,
      permissions: { ...before.permissions, [name]: stored },
    }));
  }
}

/**
 * Normalizes the address of a SearXNG server as people paste it: also the address of its search page, with a query.
 *
 * @returns An empty text for an empty one.
 * @throws {AppError} `invalid_request`, `address_not_allowed`
 */
export function normalizeSearchUrl(text: string): string {
  if (text.trim() === "") return "";
  if (/^\s*(https?:\/\/)?[^/?#\s]*@/i.test(text)) {
    const message = "The address contains credentials. Parlor can't sign in to a SearXNG server.";
    throw new AppError("invalid_request", message, { issues: [{ path: "search_url", message }] });
  }
  return normalizeBaseUrl(text).replace(/\/search$/, "");
}
