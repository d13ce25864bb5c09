/** The library: all documents, and all generated images. */
import { useTitle } from "../../components/hooks.ts";
import { texts } from "../../texts/texts.ts";
import { PageHeader } from "../shell/PageHeader.tsx";
import { GalleryImages } from "./GalleryImages.tsx";
import { LibraryDocuments } from "./LibraryDocuments.tsx";

/** One of its pages. */
export function LibraryScreen({ page }: { page: "documents" | "images" }) {
  const t = texts.library;
  const pages = [
    { id: "documents", title: texts.documents.title, address: "/library" },
    { id: "images", title: t.images, address: "/library/images" },
  ];
  useTitle(`${pages.find(({ id }) => id === page)!.title} · ${t.title} · ${texts.product}`);
  return (
    <main id="main" class="page" tabIndex={-1}>
      <PageHeader title={t.title} />
      <div class="page-scroll">
        <div class="column page-sections">
          <nav class="tab-row" aria-label={t.title}>
            {pages.map(({ id, title, address }) => (
              <a key={id} class="tab" href={address} aria-current={id === page ? "page" : undefined}>{title}</a>
            ))}
          </nav>
          {page === "documents" ? <LibraryDocuments /> : <GalleryImages />}
        </div>
      </div>
    </main>
  );
}
