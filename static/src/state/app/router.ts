/** Which screen is shown: every one has an address. */
import { batch, computed, signal } from "@preact/signals";

/** What the first visit goes through, in this order. */
export const SETUP_STEPS = ["model", "name", "passkey"] as const;

/** One of the steps. */
export type SetupStep = (typeof SETUP_STEPS)[number];

/** A screen and what it shows. */
export type Screen =
  | { name: "home" }
  | { name: "welcome"; step: SetupStep }
  | { name: "new_chat"; isTemporary: boolean }
  | { name: "chat"; conversationId: string }
  | { name: "settings"; section: string; item: string | undefined }
  | { name: "share" }
  | { name: "search" }
  | { name: "activity" }
  | { name: "pair" }
  | { name: "cli" }
  | { name: "characters" }
  | { name: "card_site" }
  | { name: "character"; characterId: string; isEdited: boolean }
  | { name: "unknown" };

/** Finds the screen of a path. */
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
  if ((first === "search" || first === "activity" || first === "share") && second === undefined) return { name: first };
  if (first === "settings") return { name: "settings", section: second ?? "general", item: third };
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

/** The page's address, kept in step with the browser's history. */
export class Router {
  readonly path = signal("/");
  /** What stands behind `?`. */
  readonly query = signal("");
  /** What stands behind `#`: the message of a chat to bring into view. */
  readonly hash = signal("");
  readonly screen = computed(() => parsePath(this.path.value));
  #window: Window;

  constructor(window: Window) {
    this.#window = window;
    this.#readAddress();
  }

  /** Listens to the back button and to clicks on our own links. Gives what ends that. */
  open(): () => void {
    // Also when only what stands behind `#` was changed by hand.
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

  /** Goes to an address of ours, such as `/c/<id>#<message>`. `replace` leaves no entry to come back to. */
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

/** Gives the address when a plain click hit a link inside our page; anything else is the browser's. */
function findOwnLink(event: MouseEvent, origin: string): string | undefined {
  if (event.defaultPrevented || event.button !== 0) return undefined;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return undefined;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || link.target !== "" || link.hasAttribute("download")) return undefined;
  const url = new URL(link.href, origin);
  return url.origin === origin && !url.pathname.startsWith("/api/") ? url.pathname + url.search + url.hash : undefined;
}
