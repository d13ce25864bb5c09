/** The bar with Pause and Stop while a message is read aloud. It stays visible while scrolling. */
import { IconButton } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import { PlaybackQueue } from "../../speech/playback.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Renders nothing while silent. Only pauses are announced, because the rest is audible. */
export function SpeechBar() {
  const { speaking } = useStore();
  const heard = speaking.now.value;
  if (!heard) return null;
  // Until the player is loaded there is only the request.
  const reading = heard instanceof PlaybackQueue ? heard : undefined;
  const phase = reading?.phase.value ?? "preparing";
  const isPaused = phase === "paused";
  const t = texts.voice;
  return (
    <div class="column">
      <div class="speech-bar" role="group" aria-label={t.bar}>
        <Icon name="speaker" />
        <span class="speech-bar-state">
          {!isPaused && t.phases[phase]}
          <span role="status">{isPaused && t.phases.paused}</span>
        </span>
        <IconButton
          icon={isPaused ? "play" : "pause"}
          label={isPaused ? t.resume : t.pause}
          isDisabled={!reading}
          onClick={() => isPaused ? reading?.resume() : reading?.pause()}
        />
        <IconButton icon="stop" label={t.stop} onClick={() => speaking.stop()} />
      </div>
    </div>
  );
}
