/** Which screen is shown: every one has an address. */
import { computed, signal } from "@preact/signals";

/** A screen and what it shows. */
export type Screen =
  | { name: "home" }
  | { name: "new_chat" }
  | { name: "chat"; conversationId: string }
  | { name: "settings"; section: string; item: string | undefined }
  | { name: "unknown" };

/** Finds the screen of a path. */
export function screenOf(path: string): Screen {
  const [first = "", second, third, ...more] = path.split("/").filter((part) => part !== "").map(decodePart);
  if (more.length > 0) return { name: "unknown" };
  if (first === "") return { name: "home" };
  if (first === "new" && second === undefined) return { name: "new_chat" };
  if (first === "c" && second !== undefined && third === undefined) return { name: "chat", conversationId: second };
  if (first === "settings") return { name: "settings", section: second ?? "general", item: third };
  return { name: "unknown" };
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
  readonly screen = computed(() => screenOf(this.path.value));
  #window: Window;

  constructor(window: Window) {
    this.#window = window;
    this.path.value = window.location.pathname;
  }

  /** Listens to the back button and to clicks on our own links. Gives what ends that. */
  open(): () => void {
    const onPop = () => this.path.value = this.#window.location.pathname;
    const onClick = (event: MouseEvent) => {
      const path = ownLinkOf(event, this.#window.location.origin);
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

  /** Goes to a path of ours. `replace` leaves no entry to come back to. */
  go(path: string, options: { replace?: boolean } = {}): void {
    if (path === this.path.value) return;
    if (options.replace) this.#window.history.replaceState(null, "", path);
    else this.#window.history.pushState(null, "", path);
    this.path.value = path;
  }
}

/** Gives the path when a plain click hit a link inside our page; anything else is the browser's. */
function ownLinkOf(event: MouseEvent, origin: string): string | undefined {
  if (event.defaultPrevented || event.button !== 0) return undefined;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return undefined;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || link.target !== "" || link.hasAttribute("download")) return undefined;
  const url = new URL(link.href, origin);
  return url.origin === origin && !url.pathname.startsWith("/api/") ? url.pathname : undefined;
}
