/** An import that runs. */
import type { Job } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { Progress } from "../../components/Progress.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { progressWords } from "../activity/format_progress.ts";

/** How far it is, and Cancel. */
export function ImportRow({ job }: { job: Job }) {
  const store = useStore();
  const { title, progress } = job;
  const share = progress?.total ? progress.done / progress.total : null;
  return (
    <li class="card">
      <h4>{title}</h4>
      <Progress label={title} value={share} text={progressWords(progress)} />
      <div class="actions-row">
        <Button
          label={`${texts.cancel}: ${title}`}
          onClick={() => void store.activity.cancel(job.id).catch((thrown) => store.report(thrown))}
        >
          {texts.cancel}
        </Button>
      </div>
    </li>
  );
}
