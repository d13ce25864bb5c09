/** The next speakers of a group chat, above the composer. */
import { useEffect } from "preact/hooks";
import { Button, IconButton } from "../../../components/Button.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { type Store, useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";

/** Clicking a name selects who speaks next; clicking again returns to the order. */
export function NextSpeakerBar({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const participants = chat.options.value.participants ?? [];
  const ids = participants.map(({ character_id }) => character_id).join("\n");
  useEffect(() => {
    for (const { character_id } of participants) store.people.loadCharacter(character_id);
    chat.loadTurnOrder().catch((thrown) => store.report(thrown));
  }, [ids]);
  const group = chat.group.value;
  if (!group) return null;
  const t = texts.chatOptions;
  const next = group.next.value;
  const waiting = group.waiting.value;
  const isBusy = chat.replies.isRunning.value || chat.replies.impersonation.value !== undefined;
  const choose = (id: string) => group.named.value = group.named.peek() === id ? undefined : id;
  return (
    <div class="cast-bar">
      <div class="chips" role="group" aria-label={t.bar}>
        {participants.map(({ character_id: id, muted }) => (
          <button
            key={id}
            type="button"
            class={muted ? "chip is-muted" : "chip"}
            aria-pressed={id === next}
            onClick={() => choose(id)}
          >
            {getSpeakerName(store, id)}
          </button>
        ))}
      </div>
      <div class="cast-actions">
        <Button kind="quiet" icon="play" isDisabled={isBusy} onClick={() => chat.replies.speakOn(next)}>
          {t.speak}
        </Button>
        <Button kind="quiet" icon="pencil" isDisabled={isBusy} onClick={() => void chat.replies.impersonate()}>
          {texts.composer.writeForMe}
        </Button>
      </div>
      {waiting.length > 0 && (
        <p class="cast-waiting" role="status">
          {t.waiting(waiting.map((id) => getSpeakerName(store, id)).join(", "))}
          <IconButton icon="close" label={t.cancelRemaining} onClick={() => group.endRow()} />
        </p>
      )}
    </div>
  );
}

/** Returns a character's name; its id until its card is loaded. */
export function getSpeakerName({ people }: Store, id: string): string {
  return people.character(id)?.name ?? id;
}
