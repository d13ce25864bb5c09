/** What is said of the tailnet node, and how patient its keeper is. */

/** Every state there is. */
export const TAILNET_STATES = ["disabled", "starting", "needs_auth", "running", "stopped", "error"] as const;

/** Where the node stands. */
export type TailnetState = (typeof TAILNET_STATES)[number];

/** What can be seen of a node that runs or is meant to. */
export interface NodeView {
  state: TailnetState;
  /** `"parlor.fox-owl.ts.net"`; `null` while it is not reached. */
  fqdn: string | null;
  /** Under which it is reached, without a slash at its end. */
  url: string | null;
  /** Where a person signs the node in. A secret: whoever has it can take the node into a tailnet of his own. */
  authUrl: string | null;
  /** One sentence; with `running` the reason why it is not HTTPS. */
  error: string | null;
}

/** The whole of it. */
export interface TailnetStatus extends NodeView {
  enabled: boolean;
  mode: "off" | "userspace";
  /** The wished name; the tailnet may give another one. */
  hostname: string;
  /** Of `url`. */
  port: number | null;
}

/** A view with nothing in it but the state. */
export function viewOf(state: TailnetState, rest: Partial<NodeView> = {}): NodeView {
  return { state, fqdn: null, url: null, authUrl: null, error: null, ...rest };
}

/** How patient the keeper of the node is, in milliseconds. */
export interface NodeTimes {
  /** From the start of the program to its first answer. */
  socketMs: number;
  /** Between two looks at a node that is on its way. */
  pollMs: number;
  /** Between two looks at a node that runs, which tells changes by itself. */
  watchMs: number;
  /** Longest wait for an answer of the node. */
  answerMs: number;
  /** After which a sign-in without an address gets its reason told, and is asked for again. */
  loginMs: number;
  /** Longest wait for a certificate: it takes a minute the first time. */
  certificateMs: number;
  /** After which a refused certificate is asked for again. */
  certificateAgainMs: number;
  /** First pause before a restart; it doubles. */
  restartMs: number;
  /** Longest wait for the farewell to the control server. */
  logoutMs: number;
  /** For the answer to whoever switched the node off from the tailnet. */
  farewellMs: number;
}

/** What is right for a node of the real kind. */
export const DEFAULT_TIMES: NodeTimes = {
  socketMs: 15_000,
  pollMs: 1_000,
  watchMs: 30_000,
  answerMs: 10_000,
  loginMs: 15_000,
  certificateMs: 120_000,
  certificateAgainMs: 60 * 60_000,
  restartMs: 1_000,
  logoutMs: 3_000,
  farewellMs: 250,
};
