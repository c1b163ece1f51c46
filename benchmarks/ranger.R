# Measures R's ranger as worker.py measures the others: Rscript ranger.R DIR TREES SEED THREADS.
# DIR holds column-major float32 features, int32 labels, and sizes.txt with training rows, test rows and features.
suppressMessages(library(ranger))
args <- commandArgs(trailingOnly = TRUE)
folder <- args[1]
trees <- as.integer(args[2])
seed <- as.integer(args[3]) + 1L # ranger takes 0 for "any seed"
threads <- as.integer(args[4])
sizes <- scan(file.path(folder, "sizes.txt"), quiet = TRUE)

read_x <- function(name, rows) {
  values <- readBin(file.path(folder, name), "numeric", n = rows * sizes[3], size = 4)
  matrix(values, nrow = rows, dimnames = list(NULL, paste0("x", seq_len(sizes[3]))))
}
read_y <- function(name, rows) readBin(file.path(folder, name), "integer", n = rows, size = 4)
memory <- function(field) {
  if (!file.exists("/proc/self/status")) return(NA)
  line <- grep(paste0("^", field, ":"), readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) * 1024
}
grow <- function(x, y) {
  # min.node.size 1 and unlimited depth are the defaults; the out-of-bag error is not asked of the others.
  ranger(x = x, y = y, num.trees = trees, num.threads = threads, seed = seed, oob.error = FALSE)
}

x_train <- read_x("x_train.bin", sizes[1])
y_train <- factor(read_y("y_train.bin", sizes[1]))
x_test <- read_x("x_test.bin", sizes[2])
y_test <- read_y("y_test.bin", sizes[2])
tiny <- matrix(rnorm(2000), ncol = 8, dimnames = list(NULL, paste0("x", 1:8)))
invisible(predict(grow(tiny, factor(tiny[, 1] > 0)), data = tiny, num.threads = threads))

invisible(gc())
try(cat("5", file = "/proc/self/clear_refs"), silent = TRUE)
before <- memory("VmRSS")
fit_seconds <- system.time(model <- grow(x_train, y_train))[["elapsed"]]
peak <- memory("VmHWM") - before
predict_seconds <- sapply(1:3, function(i) {
  system.time(predicted <<- predict(model, data = x_test, num.threads = threads)$predictions)[["elapsed"]]
})
accuracy <- mean(as.character(predicted) == as.character(y_test))
json <- function(value) if (is.na(value)) "null" else format(value, digits = 10, scientific = FALSE)
cat(sprintf(
  '{"fit_seconds": %s, "predict_seconds": [%s], "accuracy": %s, "memory_bytes": %s}\n',
  json(fit_seconds), paste(sapply(predict_seconds, json), collapse = ", "), json(accuracy), json(peak)
))
