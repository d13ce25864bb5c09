/** The router: every screen has a URL. */
import { batch, computed, signal } from "@preact/signals";

/** The steps of the first-run setup, in order. */
export const SETUP_STEPS = ["model", "name", "passkey"] as const;

/** One step. */
export type SetupStep = (typeof SETUP_STEPS)[number];

/** A screen and its parameters. */
export type Screen =
  | { name: "home" }
  | { name: "welcome"; step: SetupStep }
  | { name: "new_chat"; isTemporary: boolean }
  | { name: "chat"; conversationId: string }
  /** An empty section is the list of sections. */
  | { name: "settings"; section: string; item: string | undefined }
  | { name: "share" }
  | { name: "search" }
  | { name: "activity" }
  /** All documents, or all generated images. */
  | { name: "library"; page: "documents" | "images" }
  | { name: "pair" }
  | { name: "cli" }
  | { name: "characters" }
  | { name: "card_site" }
  | { name: "character"; characterId: string; isEdited: boolean }
  | { name: "unknown" };

/** Parses the path of a screen. */
export function parsePath(path: string): Screen {
  const [first = "", second, third, ...more] = path.split("/").filter((part) => part !== "").map(decodePart);
  if (more.length > 0) return { name: "unknown" };
  if (first === "") return { name: "home" };
  if (first === "welcome" && third === undefined) {
    const step = SETUP_STEPS.find((each) => each === (second ?? "model"));
    return step === undefined ? { name: "unknown" } : { name: "welcome", step };
  }
  if (first === "new" && second === undefined) return { name: "new_chat", isTemporary: false };
  if (first === "temporary" && second === undefined) return { name: "new_chat", isTemporary: true };
  if ((first === "pair" || first === "cli") && second === undefined) return { name: first };
  if (first === "c" && second !== undefined && third === undefined) return { name: "chat", conversationId: second };
  if ((first === "search" || first === "activity" || first === "share") && second === undefined) {
    return { name: first };
  }
  if (first === "library" && third === undefined && (second === undefined || second === "images")) {
    return { name: "library", page: second ?? "documents" };
  }
  // The address of earlier versions.
  if (first === "images" && second === undefined) return { name: "library", page: "images" };
  if (first === "settings") return { name: "settings", section: second ?? "", item: third };
  if (first === "characters") return parseCharactersPath(second, third);
  return { name: "unknown" };
}

function parseCharactersPath(id: string | undefined, part: string | undefined): Screen {
  if (id === undefined) return { name: "characters" };
  if (part === undefined) {
    return id === "browse" ? { name: "card_site" } : { name: "character", characterId: id, isEdited: false };
  }
  return part === "edit" ? { name: "character", characterId: id, isEdited: true } : { name: "unknown" };
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The current URL, in sync with the browser's history. */
export class Router {
  readonly path = signal("/");
  /** The query string. */
  readonly query = signal("");
  /** The fragment: the message of a chat to scroll to. */
  readonly hash = signal("");
  readonly screen = computed(() => parsePath(this.path.value));
  #window: Window;

  constructor(window: Window) {
    this.#window = window;
    this.#readAddress();
  }

  /** Listens to the back button and to clicks on internal links. Returns a function that stops. */
  open(): () => void {
    // Also if only the fragment was edited by hand.
    const onPop = () => this.#readAddress();
    const onClick = (event: MouseEvent) => {
      const path = findOwnLink(event, this.#window.location.origin);
      if (path === undefined) return;
      event.preventDefault();
      this.go(path);
    };
    this.#window.addEventListener("popstate", onPop);
    this.#window.document.addEventListener("click", onClick);
    return () => {
      this.#window.removeEventListener("popstate", onPop);
      this.#window.document.removeEventListener("click", onClick);
    };
  }

  /** Navigates to an internal URL, such as `/c/<id>#<message>`. `replace` adds no history entry. */
  go(address: string, options: { replace?: boolean } = {}): void {
    const { pathname, search, hash } = this.#window.location;
    if (address === pathname + search + hash) return;
    if (options.replace) this.#window.history.replaceState(null, "", address);
    else this.#window.history.pushState(null, "", address);
    this.#readAddress();
  }

  #readAddress(): void {
    const { pathname, search, hash } = this.#window.location;
    batch(() => {
      this.path.value = pathname;
      this.query.value = search.slice(1);
      this.hash.value = decodePart(hash.slice(1));
    });
  }
}

/** Returns the URL if a plain click hit an internal link. Other clicks are left to the browser. */
function findOwnLink(event: MouseEvent, origin: string): string | undefined {
  if (event.defaultPrevented || event.button !== 0) return undefined;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return undefined;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || link.target !== "" || link.hasAttribute("download")) return undefined;
  const url = new URL(link.href, origin);
  return url.origin === origin && !url.pathname.startsWith("/api/") ? url.pathname + url.search + url.hash : undefined;
}
