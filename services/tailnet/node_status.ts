/** The status of the tailnet node, and timeouts. */

/** All states. */
export const TAILNET_STATES = ["disabled", "starting", "needs_auth", "running", "stopped", "error"] as const;

/** State of the node. */
export type TailnetState = (typeof TAILNET_STATES)[number];

/** The observable status of a node. */
export interface NodeView {
  state: TailnetState;
  /** `"parlor.fox-owl.ts.net"`; null if it isn't reachable. */
  fqdn: string | null;
  /** Its URL, without a trailing slash. */
  url: string | null;
  /** URL for signing in the node. Secret: anyone who has it can add the node to their own tailnet. */
  authUrl: string | null;
  /** A complete sentence. With `running`, why there is no HTTPS. */
  error: string | null;
}

/** The complete status. */
export interface TailnetStatus extends NodeView {
  enabled: boolean;
  mode: "off" | "userspace";
  /** The wanted name. The tailnet may assign another. */
  hostname: string;
  /** Of `url`. */
  port: number | null;
}

/** Creates a view. Fields that are not passed are null. */
export function createView(state: TailnetState, rest: Partial<NodeView> = {}): NodeView {
  return { state, fqdn: null, url: null, authUrl: null, error: null, ...rest };
}

/** Timeouts and intervals, in milliseconds. */
export interface NodeTimes {
  /** From the start of the program to its first response. */
  socketMs: number;
  /** Between two polls of a node that is starting. */
  pollMs: number;
  /** Between two polls of a running node, which reports changes itself. */
  watchMs: number;
  /** For a response of the node. */
  answerMs: number;
  /** After which a sign-in without a URL is requested again and its reason shown. */
  loginMs: number;
  /** For a certificate, which takes a minute the first time. */
  certificateMs: number;
  /** Until a refused certificate is requested again. */
  certificateAgainMs: number;
  /** First delay before a restart; it doubles. */
  restartMs: number;
  /** For logging out at the control server. */
  logoutMs: number;
  /** For the response to a client that turned the node off over the tailnet. */
  farewellMs: number;
}

/** Defaults for a real node. */
export const NODE_TIMES: NodeTimes = {
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
