/** Downloads the model that an Ollama server doesn't have, then asks it again. */
import { useEffect, useState } from "preact/hooks";
import { asApiError } from "../../../api/client.ts";
import { startModelPull } from "../../../api/model_pulls.ts";
import type { Connection, Job } from "../../../api/types.ts";
import { Button } from "../../../components/Button.tsx";
import { Progress } from "../../../components/Progress.tsx";
import { findModelPull, isUnderWay } from "../../../state/connections/model_pull.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { formatProgress } from "../../activity/format_progress.ts";

/** Shows a download that is already under way, too; only one that was wanted here is followed by a retry. */
export function PullCure(
  { connection, model, onRetry }: { connection: Connection; model: string; onRetry: () => void },
) {
  const store = useStore();
  const { activity } = store;
  const [wanted, setWanted] = useState<Job>();
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    void activity.refresh();
  }, []);
  const listed = activity.jobs.value;
  const job = listed.find(({ id }) => id === wanted?.id) ?? wanted ?? findModelPull(listed, connection, model);
  const state = job?.state;
  useEffect(() => {
    if (wanted === undefined || state === undefined || isUnderWay(state)) return;
    setWanted(undefined);
    if (state === "done") onRetry();
    if (state === "failed") setProblem(job?.error?.message ?? texts.cures.downloadFailed(model));
  }, [state, wanted]);

  const start = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      setWanted(await startModelPull(store.api.client, connection.id, model));
      await activity.refresh();
    } catch (thrown) {
      setProblem(asApiError(thrown).message);
    }
    setBusy(false);
  };
  const cancel = (id: string) => {
    setBusy(true);
    activity.cancel(id).catch((thrown) => store.report(thrown)).finally(() => setBusy(false));
  };
  const running = job !== undefined && isUnderWay(job.state) ? job : undefined;
  const { progress } = running ?? {};
  return (
    <div class="cure">
      {problem && <p class="field-error" role="alert">{problem}</p>}
      {running && (
        <>
          <p role="status">
            {wanted ? texts.cures.downloadingThenRetry(model) : texts.cures.downloading(model)}
          </p>
          <Progress
            label={texts.cures.downloading(model)}
            value={progress?.total ? progress.done / progress.total : null}
            text={formatProgress(progress ?? null)}
          />
        </>
      )}
      <div class="actions-row">
        {!wanted && (
          <Button kind="primary" isBusy={isBusy} onClick={() => void start()}>
            {running ? texts.cures.retryWhenDownloaded : texts.cures.download(model)}
          </Button>
        )}
        {running && (
          <Button
            kind="quiet"
            isBusy={isBusy && wanted !== undefined}
            label={texts.activity.cancelJob(model)}
            onClick={() => cancel(running.id)}
          >
            {texts.cancel}
          </Button>
        )}
      </div>
    </div>
  );
}
