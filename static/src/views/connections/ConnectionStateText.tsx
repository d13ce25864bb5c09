/** The state of a connection as an icon and a word. */
import type { Connection } from "../../api/types.ts";
import { type ConnectionState, getStateTone } from "../../state/connections/connection_state.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Returns the state in one or two words. */
export function getStateText(connection: Connection, { kind }: ConnectionState): string {
  return connection.kind === "demo" ? texts.connection.demo : texts.connection.states[kind];
}

/** Renders the icon and the word. */
export function ConnectionStateText({ connection }: { connection: Connection }) {
  const state = useStore().connections.getState(connection);
  return (
    <p class="state-line">
      <span class={`state-mark ${getStateTone(state)}`} aria-hidden="true" />
      {getStateText(connection, state)}
    </p>
  );
}
