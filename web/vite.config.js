// Builds view.js and view.css, which the Python package copies into each page that it writes.
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: "../python/unisono/_web",
    emptyOutDir: true,
    target: "es2022",
    cssMinify: true,
    lib: { entry: "src/main.ts", formats: ["iife"], name: "unisonoView", fileName: () => "view.js", cssFileName: "view" },
  },
});
