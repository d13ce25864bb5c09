/** The large picture of a character, and the job that draws one. */
import type { Character } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import { Portrait } from "../../components/Portrait.tsx";
import { Progress } from "../../components/Progress.tsx";
import type { CharacterPage } from "../../state/characters/character_page.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { portraitOf } from "./portrait_props.ts";

/** Width of its place on a wide screen, in pixels. */
const WIDTH_PX = 320;

/** Portrait and job. */
export function CharacterPortrait({ page, character }: { page: CharacterPage; character: Character }) {
  const store = useStore();
  const t = texts.characters;
  const { state, progress, error } = page.portrait.value;
  return (
    <div class="character-side">
      <Portrait {...portraitOf(character)} widthPx={WIDTH_PX} class="character-picture" />
      {(state === "pending" || state === "running") && (
        <div class="portrait-job" role="status">
          <span>{t.drawing}</span>
          <Progress label={t.drawing} value={state === "running" ? progress ?? null : null} />
        </div>
      )}
      {!character.external && state !== "pending" && state !== "running" && (
        <Button
          icon="wand"
          onClick={() => void page.drawPortrait().catch((thrown) => store.report(thrown))}
        >
          {t.draw}
        </Button>
      )}
      {state === "failed" && <Notice tone="danger" title={t.drawFailed}>{error?.message}</Notice>}
    </div>
  );
}
